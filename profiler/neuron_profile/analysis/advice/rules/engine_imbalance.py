"""One elementwise engine does all the work while another that could do it idles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.advice.context import Context, Select
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.whatif.change import rows_change
from neuron_profile.analysis.whatif.kernel_lines import kernel_lines
from neuron_profile.reports.quantities import percent
from neuron_tools.arrays import Floats, Mask
from neuron_tools.frozen import frozen
from neuron_tools.records.program import Engine, Memory, Opcode, Program
from neuron_tools.simulator.instruction_costs import instruction_costs, shared_ports

BUSY, IDLE = 0.6, 0.2
PARTS = 8
"""Of this many tiles that follow each other, a whole number moves to the other engine."""
_MOVES = {
    Engine.VECTOR: (Engine.GPSIMD, Engine.SCALAR),
    Engine.GPSIMD: (Engine.VECTOR,),
    Engine.SCALAR: (Engine.VECTOR,),
}
_ON_TWO_ENGINES = (Opcode.TENSOR_TENSOR, Opcode.TENSOR_SCALAR, Opcode.SCALAR_TENSOR_TENSOR, Opcode.MEMSET)
_CAN_DO = {
    Engine.VECTOR: (*_ON_TWO_ENGINES, Opcode.TENSOR_COPY),
    Engine.GPSIMD: (*_ON_TWO_ENGINES, Opcode.TENSOR_COPY),
    Engine.SCALAR: (Opcode.TENSOR_SCALAR, Opcode.TENSOR_COPY),
}
"""Work that another engine may give to this one; reductions, scans and functions stay where they are."""


def find(context: Context) -> Iterator[Finding]:
    """A finding per engine that is busy for 60 % of the device time beside one below 20 %.

    The gain is that of the best split between the two: the other takes its own time for each instruction, and
    both may need the same port of SBUF or PSUM.
    """
    if not context.device_ns:
        return
    share = {engine: context.hotspot(_rows(engine)).busy_ns / context.device_ns for engine in _MOVES}
    for engine, others in _MOVES.items():
        idle = [other for other in others if share[other] <= IDLE]
        if share[engine] < BUSY or not idle:
            continue
        splits = {other: _best_split(context, engine, other) for other in idle}
        other = min(idle, key=lambda candidate: splits[candidate].factor)
        factor, moving = splits[other].factor, _movable(engine, other)
        if factor >= 1:
            continue
        hot = context.hotspot(moving)
        yield context.finding(
            "engine_imbalance",
            f"{engine.title} is busy {percent(share[engine])} of the device time, {other.title} "
            f"{percent(share[other])}",
            f"Give about {percent(1 - factor)} of the elementwise work to {other.title}.",
            rows_change(moving, factor),
            place=hot.place,
            evidence={
                "busy_share": round(share[engine], 3),
                "idle_share": round(share[other], 3),
                "from": engine.title,
                "to": other.title,
                "moved_share": round(1 - factor, 3),
                "turns": splits[other].turns,
            },
        )


@frozen
class _Split:
    """How two engines share work.

    Attributes:
        factor: Time of what may move then, over its time now; 1 = no gain.
        turns: Which of `PARTS` tiles that follow each other the other engine takes.
    """

    factor: float
    turns: tuple[int, ...]


def _turns(count: int) -> tuple[int, ...]:
    """Which of `PARTS` tiles the other engine takes if it takes so many, spread evenly."""
    return tuple(sorted({(2 * number + 1) * PARTS // (2 * count) for number in range(count)}))


def _parts(tiles: int) -> Floats:
    """(PARTS + 1,) the part of all tiles that moves with each number of turns."""
    whole, rest = divmod(tiles, PARTS)
    taken = [whole * count + sum(turn < rest for turn in _turns(count)) for count in range(PARTS + 1)]
    return np.array(taken) / tiles


def _tiles_at(context: Context, moving: Select) -> int:
    """How many tiles the busiest line of a kernel makes in an execution; at least `PARTS`.

    Fewer tiles than that are taken again and again.
    """
    place = context.hotspot(moving).place
    for use in context.programs:
        lines = kernel_lines(use.program)
        if lines is not None and (place.file, place.line) in lines.places:
            here = lines.instruction == lines.places.index((place.file, place.line))
            written = use.program.instructions["destination"][here & moving(use.program)[0]]
            return max(PARTS, len(np.unique(written[written >= 0])))
    return PARTS


def _best_split(context: Context, engine: Engine, other: Engine) -> _Split:
    """The split in which the engines are done earliest, of whole tiles."""
    stays, kept, moved, busy, port = 0.0, 0.0, 0.0, 0.0, 0.0
    for use in context.programs:
        table = use.program.instructions
        rows = _movable(engine, other)(use.program)[0]
        others = _rows(engine)(use.program)[0] & ~rows
        elsewhere = table[rows].copy()
        elsewhere["engine"] = int(other)
        core = context.executions.core  # type: ignore[union-attr]  # there are programs
        stays += use.count * float(instruction_costs(table[others], core)[0].sum())
        kept += use.count * float(instruction_costs(table[rows], core)[0].sum())
        moved += use.count * float(instruction_costs(elsewhere, core)[0].sum())
        busy += use.count * float(instruction_costs(table[table["engine"] == int(other)], core)[0].sum())
        both = np.concatenate([table[rows], elsewhere])
        ports = shared_ports(both, core).reshape(2, -1)
        port += use.count * float(((ports[0] & ports[1]) != 0) @ instruction_costs(table[rows], core)[0])
    if not kept or not moved:
        return _Split(1.0, ())
    part = _parts(_tiles_at(context, _movable(engine, other)))
    alone, shared = (1 - part) * kept, part * moved
    together = port / kept * (alone + shared)
    best = int(np.argmin(np.maximum.reduce([stays + alone, shared + busy, stays + together])))
    return _Split(float(max(alone[best], together[best]) / kept), _turns(best))


def _movable(engine: Engine, other: Engine) -> Select:
    """What an engine does that the other can do as well; GpSimd reaches no PSUM."""

    def select(program: Program) -> tuple[Mask, Mask]:
        table, (rows, dmas) = program.instructions, _rows(engine)(program)
        rows = rows & np.isin(table["opcode"], [int(opcode) for opcode in _CAN_DO[other]])
        if other is Engine.GPSIMD:
            in_psum = int(Memory.PSUM)
            rows &= (table["source_memory"] != in_psum) & (table["destination_memory"] != in_psum)
        return rows, dmas

    return select


def _rows(engine: Engine) -> Select:
    def select(program: Program) -> tuple[Mask, Mask]:
        table = program.instructions
        return (table["engine"] == int(engine)) & (table["dma"] < 0), np.zeros(len(program.dmas), bool)

    return select
