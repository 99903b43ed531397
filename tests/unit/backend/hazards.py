"""Which accesses of a compiled kernel come too early: they touch a place that an earlier row still uses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuron_tools.backend.pipeline import Options
from neuron_tools.hardware import NeuronCore
from neuron_tools.nki.lowering.program import _Layout, _Lowering
from neuron_tools.nki.tracer import Tracer
from neuron_tools.simulator import simulate

WRITES = 2
"""Operand slots that a call writes; the others it reads."""


@dataclass(frozen=True)
class Access:
    """A region that a row reads or writes, and when.

    Attributes:
        memory: The memory on chip, or the buffer in HBM.
        lines: Its partitions, or rows of HBM: first, and one past the last.
        bytes: Its bytes in each of these, likewise.
        stream: The engine; a transfer has a stream of its own.
        begin_ps: When the first instruction that touches it starts.
        row_begin_ps, row_end_ps: Of all instructions of the row.
    """

    row: int
    writes: bool
    memory: tuple[bool, int]
    lines: tuple[int, int]
    bytes: tuple[int, int]
    stream: tuple[bool, int]
    begin_ps: int
    row_begin_ps: int
    row_end_ps: int

    def conflicts(self, other: Access) -> bool:
        """Whether the two may not change places."""
        return (
            self.row != other.row
            and (self.writes or other.writes)
            and self.memory == other.memory
            and _overlap(self.lines, other.lines)
            and _overlap(self.bytes, other.bytes)
        )

    def waits_for(self, earlier: Access) -> bool:
        """Whether it begins after the other, in order on one stream, after its end on another."""
        if self.stream == earlier.stream:
            return self.row_begin_ps >= earlier.row_begin_ps
        return self.begin_ps >= earlier.row_end_ps


def hazards(trace: Tracer, options: Options, core: NeuronCore) -> list[tuple[Access, Access]]:
    """Pairs of conflicting accesses, in the rows' order, of which the second does not wait for the first."""
    accesses = _accesses(trace, options, core)
    return [
        (earlier, later)
        for number, later in enumerate(accesses)
        for earlier in accesses[:number]
        if later.conflicts(earlier) and not later.waits_for(earlier)
    ]


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _accesses(trace: Tracer, options: Options, core: NeuronCore) -> list[Access]:
    """Every region of every row, with its simulated time."""
    lowering = _Lowering(trace, "kernel", None, options)
    lowered = lowering.lowered()
    program, call, rows = lowered.program, lowered.source.call, lowering.rows
    simulation = simulate(program, core)
    starts, ends = simulation.start_ps.copy(), simulation.end_ps.copy()
    dma = program.instructions["dma"]
    moves = np.flatnonzero(dma >= 0)
    starts[moves], ends[moves] = simulation.dma_start_ps[dma[moves]], simulation.dma_end_ps[dma[moves]]
    begin, end = np.full(len(rows), np.iinfo(np.int64).max), np.full(len(rows), -1, np.int64)
    np.minimum.at(begin, call, starts)
    np.maximum.at(end, call, ends)
    streams = {int(row): (False, int(engine)) for row, engine in zip(call, program.instructions["engine"])}
    streams |= {int(call[move]): (True, int(move)) for move in moves}
    layout, buffers = _Layout(lowering.kinds, rows), lowering.body.buffers
    found = []
    for row, slot in np.argwhere(rows[:, 3:] >= 0).tolist():
        buffer, first, last, low, high = lowering.regions[rows[row, 3 + slot]].tolist()
        on_chip = bool(buffers.on_chip[buffer])
        address = int(lowering.places.address[buffer]) if on_chip else 0
        touching = int(layout.waiting_row(np.array([row]), np.array([slot]))[0])
        found.append(Access(
            row, slot < WRITES, (on_chip, int(buffers.memory[buffer]) if on_chip else buffer), (first, last),
            (address + low, address + high), streams[row],
            int(begin[row] if streams[row][0] else starts[touching]), int(begin[row]), int(end[row]),
        ))  # fmt: skip
    return found
