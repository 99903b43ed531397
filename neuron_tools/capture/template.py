"""What one execution of an executable adds to the profile, with times relative to its start.

Computed once per executable; every execution is then a matter of adding offsets and ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.records.executable import Executable
from neuron_tools.records.program import (
    Engine,
    HloOperation,
    Memory,
    Opcode,
    Program,
    Purpose,
    QueueKind,
)

PICOSECONDS_PER_NANOSECOND = 1000


@dataclass(frozen=True)
class Span:
    """Relative start and end in ns of each row of something; -1 where the row has no instruction."""

    start_ns: Ints
    end_ns: Ints


@dataclass(frozen=True)
class Template:
    """Relative rows of one executable.

    Attributes:
        hlo: Interval of each HLO operation over its instructions and DMAs, until what they released begins.
        framework: Interval of each framework operation: over the HLO operations that belong to it, else its
            share of the one that it was fused into.
        hlo_framework: Row of the framework operation that each HLO operation belongs to.
        hlo_rows, framework_rows: The rows that have an interval, in table order.
    """

    executable: Executable
    instructions: Span
    wait_ns: Ints
    dmas: Span
    dma_instruction: Ints
    hlo: Span
    framework: Span
    hlo_framework: Ints
    hlo_rows: Ints
    framework_rows: Ints

    @property
    def program(self) -> Program:
        """The executable's Program."""
        return self.executable.program

    def first_hlo(self) -> Ints:
        """Row of the first HLO operation, of those with an interval, of each framework operation; or -1."""
        first = np.full(len(self.program.framework), -1, np.int64)
        for row in reversed(self.hlo_rows.tolist()):
            first[list(self.program.hlo[row].framework)] = row
        return first


def make_template(executable: Executable) -> Template:
    """The relative rows of an executable."""
    program, simulation = executable.program, executable.simulation
    instructions = Span(_ns(simulation.start_ps), _ns(simulation.end_ps))
    dmas = Span(_ns(simulation.dma_start_ps), _ns(simulation.dma_end_ps))
    hlo = _hlo_spans(executable, instructions, dmas)
    owner = np.array([h.framework[0] if h.framework else -1 for h in program.hlo], np.int64)
    framework = _framework_spans(program, hlo, owner)
    return Template(
        executable=executable,
        instructions=instructions,
        wait_ns=np.maximum(_ns(simulation.start_ps) - _ns(simulation.ready_ps), 0),
        dmas=dmas,
        dma_instruction=_dma_instructions(program),
        hlo=hlo,
        framework=framework,
        hlo_framework=owner,
        hlo_rows=np.flatnonzero(hlo.start_ns >= 0),
        framework_rows=np.flatnonzero(framework.start_ns >= 0),
    )


def _ns(picoseconds: Ints) -> Ints:
    """Nanoseconds, rounded down: order and containment survive."""
    nanoseconds: Ints = np.asarray(picoseconds, np.int64) // PICOSECONDS_PER_NANOSECOND
    return nanoseconds


def _hlo_spans(executable: Executable, instructions: Span, dmas: Span) -> Span:
    """Intervals of the HLO operations.

    An operation lasts until what waited for it begins: that it has ended takes a semaphore's time to be seen.
    """
    table, transfers = executable.program.instructions["hlo"], executable.program.dmas["hlo"]
    cause = executable.simulation.wait_cause.astype(np.int64)
    by_instruction, by_dma = np.flatnonzero(cause >= 0), np.flatnonzero(cause <= -2)
    seen = [
        (owner[causes], Span(span.end_ns[causes], instructions.start_ns[released]))
        for owner, span, causes, released in (
            (table, instructions, cause[by_instruction], by_instruction),
            (transfers, dmas, -2 - cause[by_dma], by_dma),
        )
    ]
    return _cover(len(executable.program.hlo), [(table, instructions), (transfers, dmas), *seen])


def _cover(rows: int, parts: list[tuple[npt.NDArray[Any], Span]]) -> Span:
    """Smallest interval that holds all spans of each owner row."""
    none = np.iinfo(np.int64).max
    start, end = np.full(rows, none, np.int64), np.full(rows, -1, np.int64)
    for owner, span in parts:
        owned = owner >= 0
        np.minimum.at(start, owner[owned], span.start_ns[owned])
        np.maximum.at(end, owner[owned], span.end_ns[owned])
    start[start == none] = -1
    return Span(start, end)


def _framework_spans(program: Program, hlo: Span, owner: Ints) -> Span:
    """Intervals of the framework operations.

    An HLO operation lies within the one that it belongs to. The others that were fused into it follow one
    another below that one, each as long as its share: a fusion of many would else be as many rows deep.
    """
    timed = hlo.start_ns >= 0
    spans = _cover(len(program.framework), [(np.where(timed, owner, -1), hlo)])
    largest: dict[int, float] = {}
    for row in np.flatnonzero(timed).tolist():
        for number, share, start_ns, end_ns in _slices(program.hlo[row], hlo.start_ns[row], hlo.end_ns[row]):
            if share > largest.get(number, -1.0) and (spans.start_ns[number] < 0 or number in largest):
                largest[number] = share
                spans.start_ns[number], spans.end_ns[number] = start_ns, end_ns
    return spans


def _slices(operation: HloOperation, start_ns: int, end_ns: int) -> Iterator[tuple[int, float, int, int]]:
    """(framework operation, share, start, end) of each part of a fused operation, in the program's order."""
    before = 0.0
    for number, share in sorted(zip(operation.framework, operation.shares)):
        after = min(before + share, 1.0)
        duration_ns = end_ns - start_ns
        yield number, share, int(start_ns + duration_ns * before), int(start_ns + duration_ns * after)
        before = after


def _dma_instructions(program: Program) -> Ints:
    """Row of the instruction that triggers each DMA; -1 = none."""
    trigger = np.full(len(program.dmas), -1, np.int64)
    rows = np.flatnonzero(program.instructions["dma"] >= 0)
    trigger[program.instructions["dma"][rows]] = rows
    return trigger


def engine_titles(program: Program) -> list[str]:
    """`Instruction.engine` of each row."""
    titles = [engine.title for engine in Engine]
    return [titles[engine] for engine in program.instructions["engine"]]


def opcode_names(program: Program) -> list[str]:
    """`Instruction.opcode` of each row."""
    names = {int(opcode): opcode.name for opcode in Opcode}
    return [names[int(opcode)] for opcode in program.instructions["opcode"]]


def memory_names(column: npt.NDArray[Any]) -> list[str]:
    """Memory names of a memory column."""
    names = [memory.name for memory in Memory]
    return [names[memory] for memory in column]


def queue_kind_names(program: Program) -> list[str]:
    """`queue_type` of each DMA: the published enumeration's spelling, which has none for collectives."""
    published = {QueueKind.COLLECTIVE: QueueKind.DATA}
    kinds = [published.get(queue.kind, queue.kind).name.lower() for queue in program.queues]
    return [kinds[queue] for queue in program.dmas["queue"]]


def purpose_names(program: Program) -> list[str]:
    """What each DMA is for."""
    names = [purpose.name.lower() for purpose in Purpose]
    return [names[purpose] for purpose in program.dmas["purpose"]]
