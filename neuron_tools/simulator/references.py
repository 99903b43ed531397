"""What the rows of a Program refer to, checked before it is timed, and what holds one that deadlocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Bools, Ints
from neuron_tools.records.program import Engine, Opcode, Program, peer_semaphore
from neuron_tools.simulator.errors import ProgramError


def describe(program: Program, row: int) -> str:
    """An instruction as a sentence names it: "instruction 12 (Vector TENSOR_COPY, model.py:31)"."""
    instruction = program.instructions[row]
    engine, opcode = _engine(int(instruction["engine"])), _opcode(int(instruction["opcode"]))
    place = _source_line(program, int(instruction["hlo"]))
    return f"instruction {row} ({engine} {opcode}{', ' + place if place else ''})"


def _engine(number: int) -> str:
    return Engine(number).title if number < len(Engine) else f"engine {number}"


def _opcode(number: int) -> str:
    return Opcode(number).name if number < len(Opcode) else f"opcode {number}"


def check_references(program: Program) -> None:
    """Refuse references to rows, queues, semaphores and engines that do not exist.

    Raises:
        ProgramError: An instruction or DMA names something that is not there.
    """
    _check_instructions(program)
    _check_waits(program)
    _check_dmas(program)


def _check_instructions(program: Program) -> None:
    from neuron_tools.simulator.reference_kernel import FAULTS, first_fault

    row, fault = first_fault(
        program.instructions,
        len(program.waits),
        len(program.dmas),
        len(program.hlo),
        program.semaphore_count,
        len(program.tiles),
        len(program.activations),
    )
    if row >= 0:
        raise ProgramError(f"Program {program.name!r}: {describe(program, row)} {FAULTS[fault]}.")


def held_instruction(
    program: Program,
    engine_start: Ints,
    engine_rows: npt.NDArray[np.int32],
    positions: Ints,
    semaphores: Ints,
) -> ProgramError:
    """The error for a deadlock: the first held instruction and what it waits for."""
    held = [
        int(engine_rows[positions[engine]])
        for engine in range(len(positions))
        if positions[engine] < engine_start[engine + 1]
    ]
    for row in held:
        instruction = program.instructions[row]
        first = int(instruction["first_wait"])
        for wait in program.waits[first : first + int(instruction["wait_count"])]:
            own = int(wait["semaphore"])
            value = int(semaphores[own if own >= 0 else peer_semaphore(own)])
            if value < wait["value"]:
                return ProgramError(
                    f"Program {program.name!r} deadlocks: {describe(program, row)} waits for semaphore "
                    f"{wait['semaphore']} to reach {wait['value']}, but it stays at {value}; "
                    f"{len(held)} of {len(positions)} engines are held."
                )
    row = held[0]
    return ProgramError(f"Program {program.name!r} deadlocks: {describe(program, row)} can never start.")


def held_collective(programs: Sequence[Program], dma: int) -> ProgramError:
    """The error for a collective, row `dma` of all Programs' DMAs, that waits for a rank that never comes."""
    for program in programs:
        if dma < len(program.dmas):
            break
        dma -= len(program.dmas)
    row = int(np.flatnonzero(program.instructions["dma"] == dma)[0])
    part = program.collectives[int(program.dmas["collective"][dma])]
    return ProgramError(
        f"Program {program.name!r} waits for ever: {describe(program, row)} takes part in "
        f"{part.kind.name.lower()} {part.name!r} of ranks {list(part.group)}, which another rank never joins."
    )


def _check_waits(program: Program) -> None:
    waits = program.waits
    own = np.where(waits["semaphore"] < -1, peer_semaphore(waits["semaphore"]), waits["semaphore"])
    bad = (own < 0) | (own >= program.semaphore_count)
    if bad.any():
        first = program.instructions["first_wait"].astype(np.int64)
        end = first + program.instructions["wait_count"]
        waiting = end > first
        before = np.concatenate([[0], np.cumsum(bad)])
        broken = np.zeros(len(waiting), bool)
        broken[waiting] = before[end[waiting]] > before[first[waiting]]
        refuse(program, broken, "waits for an undefined semaphore")


def _check_dmas(program: Program) -> None:
    instructions, dmas = program.instructions, program.dmas
    trigger = np.full(len(dmas), -1, np.int64)
    rows = np.flatnonzero(instructions["dma"] >= 0)
    started = instructions["dma"][rows]
    repeated = np.ones(len(rows), bool)
    repeated[np.unique(started, return_index=True)[1]] = False
    _refuse_rows(program, rows[repeated], "starts a DMA that another instruction starts")
    trigger[started] = rows
    if np.any(trigger < 0):
        raise ProgramError(f"Program {program.name!r}: DMA {int(np.argmin(trigger))} is never started.")
    engines = np.array([queue.engine for queue in program.queues], np.int64)
    unknown = dmas["queue"] >= len(engines)
    _refuse_rows(program, trigger[unknown], "starts a DMA on a queue that does not exist")
    foreign = instructions["engine"][trigger] != engines[dmas["queue"]] if len(dmas) else np.zeros(0, bool)
    _refuse_rows(program, trigger[foreign], "starts a DMA on a queue of another engine")
    for column, limit, what in (
        ("semaphore", program.semaphore_count, "an undefined semaphore"),
        ("tensor", len(program.tensors), "a tensor that does not exist"),
        ("tile", len(program.tiles), "a tile that does not exist"),
        ("collective", len(program.collectives), "a collective that does not exist"),
    ):
        bad = _outside(dmas[column], limit)
        _refuse_rows(program, trigger[bad], f"starts a DMA with {what}")
    _refuse_rows(program, trigger[dmas["bytes"] < 0], "starts a DMA of negative size")
    held = (dmas["increment"] <= 0) & (dmas["semaphore"] >= 0)
    _refuse_rows(program, trigger[held], "starts a DMA whose semaphore gains nothing")


def _outside(references: npt.NDArray[np.generic], limit: int) -> Bools:
    values = np.ascontiguousarray(references)
    return np.asarray((values < -1) | (values >= limit))


def refuse(program: Program, broken: Bools, fault: str) -> None:
    """Refuse a Program for the first of its instructions that is marked.

    Args:
        program: The Program.
        broken: (instructions,) what breaks the rule.
        fault: What such an instruction does, as the sentence goes on after naming it.

    Raises:
        ProgramError: One is marked.
    """
    if broken.any():
        _refuse_rows(program, np.flatnonzero(broken), fault)


def _refuse_rows(program: Program, rows: npt.NDArray[np.int64], fault: str) -> None:
    if len(rows):
        raise ProgramError(f"Program {program.name!r}: {describe(program, int(rows[0]))} {fault}.")


def _source_line(program: Program, hlo: int) -> str:
    if not 0 <= hlo < len(program.hlo):
        return ""
    operation = program.hlo[hlo]
    for row in operation.framework:
        stack = program.framework[row].stack if 0 <= row < len(program.framework) else ()
        for frame in stack[:1]:
            return f"{frame.file}:{frame.line}"
    return operation.name
