"""Rows that an instruction reads on every partition: the Tensor engine brings them there.

No engine but Tensor reaches across partitions, so that the compiler multiplies a row by ones. Counters of
NKIBench show a product for each use (mamba: 1792, as the kernel asks), and an MLP's time on Trn2 grows with
each tile by one product more than its sum has: 1.08 us for four in bf16, five times the 216 ns of one. A row
of one PSUM bank is read where the product leaves it; a longer one is copied to SBUF piece by piece. So is one
that several instructions read of one tile: add_rmsnorm_matmul loads a row in front of its loop, and brings it
to all partitions once.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.backend.body import (
    BUFFER,
    COLUMNS,
    FIRST_LINE,
    FIRST_READ,
    FIRST_WRITE,
    ITERATION,
    KIND,
    LAST_LINE,
    SITE,
    Body,
    Buffers,
)
from neuron_tools.backend.in_psum import reading_psum, reads_one_in_psum
from neuron_tools.backend.kinds import READS, Kind, Step
from neuron_tools.backend.schedule import add_kind
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode

_READERS = (Opcode.TENSOR_TENSOR, Opcode.TENSOR_SCALAR, Opcode.SCALAR_TENSOR_TENSOR, Opcode.TENSOR_COPY)
_SUM_BYTES = DType.F32.byte_count
"""Bytes of an element in PSUM."""


def spread_rows(body: Body) -> Body:
    """The body with products that bring rows to all partitions."""
    across = body.kind_column([_across(kind) for kind in body.kinds])
    lines = body.regions[:, LAST_LINE] - body.regions[:, FIRST_LINE]
    in_sbuf = body.buffers.memory[body.regions[:, BUFFER]] == int(Memory.SBUF)
    single = in_sbuf & (lines == 1)
    read = body.rows[:, FIRST_READ:]
    found = (across > 1)[:, None] & (read >= 0) & single[np.maximum(read, 0)]
    if not found.any():
        return body
    return _Spreading(body, np.argwhere(found)).body()


def _across(kind: Kind) -> int:
    """Partitions on which a kind computes, where it may read one row on all of them."""
    if len(kind.steps) != 1 or kind.steps[0].opcode not in _READERS:
        return 0
    return kind.steps[0].partitions


class _Spreading:
    """Builds the body with the products put in."""

    def __init__(self, body: Body, found: Ints) -> None:
        self.before, self.found = body, found
        self.rows = body.rows.copy()
        self.kinds = list(body.kinds)
        self.regions: list[tuple[int, int, int, int, int]] = []
        self.tiles: list[tuple[Memory, int, int, int]] = []  # memory, partitions, bytes, buffer that it is of
        self.extra: list[list[int]] = []
        self.at: list[int] = []
        self._made: dict[tuple[object, ...], int] = {}
        self._kept: dict[tuple[int, ...], int] = {}
        self._repeated = _repeated(body, found)

    def body(self) -> Body:
        """The result."""
        body = self.before
        for row, slot in self.found.tolist():
            self._spread(row, slot)
        place = np.concatenate([np.array(self.at, np.int64) * 2, np.arange(len(self.rows)) * 2 + 1])
        order = np.argsort(place, kind="stable")
        rows = np.concatenate([np.array(self.extra, np.int32).reshape(-1, COLUMNS), self.rows])
        origin = np.concatenate([np.full(len(self.extra), -1, np.int64), body.origin])
        regions = np.concatenate([body.regions, np.array(self.regions, np.int32).reshape(-1, 5)])
        return replace(
            body, rows=np.ascontiguousarray(rows[order]), origin=origin[order], kinds=self.kinds,
            regions=regions, buffers=body.buffers.joined(self._buffers()),
        )  # fmt: skip

    def _spread(self, row: int, slot: int) -> None:
        """Put in what one operand needs, and let the call read the result."""
        step = self.kinds[int(self.rows[row, KIND])].steps[0]
        source = int(self.rows[row, FIRST_READ + slot])
        buffer, line, _, low, high = (int(value) for value in self.before.regions[source])
        item = max((high - low) // max(step.elements, 1), 1)
        elements = (high - low) // item
        most = self.before.core.psum_bank_bytes // _SUM_BYTES
        box = buffer, line, low, high, step.partitions
        if box in self._kept:
            self.rows[row, FIRST_READ + slot] = self._kept[box]
            return
        reaches_psum = step.engine is not Engine.GPSIMD or bool(self.kinds[int(self.rows[row, KIND])].engines)
        reaches_psum &= not reads_one_in_psum(step)
        if elements <= most and buffer not in self._repeated and reaches_psum:
            target = self._product(row, source, buffer, step.partitions, elements, item)
            self.rows[row, FIRST_READ + slot] = target
            reader = int(self.rows[row, KIND])
            self.rows[row, KIND] = self._kind(partial(self._reading, reader, slot))
            return
        tile = self._tile(Memory.SBUF, step.partitions, elements * item, buffer)
        for first in range(0, elements, most):
            count = min(most, elements - first)
            part = self._region(buffer, line, line + 1, low + first * item, low + (first + count) * item)
            made = self._product(row, part, buffer, step.partitions, count, item)
            piece = self._region(tile, 0, step.partitions, first * item, (first + count) * item)
            dtype = DType.F32 if item == _SUM_BYTES else DType.BF16
            copy = self._kind(partial(_copy, step.partitions, count, dtype))
            self._call(row, copy, piece, [made])
        whole = self._region(tile, 0, step.partitions, 0, elements * item)
        self.rows[row, FIRST_READ + slot] = whole
        if buffer in self._repeated:
            self._kept[box] = whole

    def _product(self, row: int, source: int, buffer: int, partitions: int, elements: int, item: int) -> int:
        """A product of ones and a row of a buffer; returns the region in PSUM that it writes."""
        tile = self._tile(Memory.PSUM, partitions, elements * _SUM_BYTES, buffer)
        target = self._region(tile, 0, partitions, 0, elements * _SUM_BYTES)
        dtype = DType.F32 if item == _SUM_BYTES else DType.BF16
        kind = self._kind(partial(_ones_times, partitions, elements, dtype))
        self._call(row, kind, target, [-1, source])
        return target

    def _call(self, row: int, kind: int, target: int, sources: list[int]) -> None:
        call = [-1] * COLUMNS
        call[KIND], call[SITE], call[ITERATION] = kind, int(self.rows[row, SITE]), int(self.rows[row, 2])
        call[FIRST_WRITE] = target
        call[FIRST_READ : FIRST_READ + len(sources)] = sources
        self.extra.append(call)
        self.at.append(row)

    def _kind(self, make: partial[Kind]) -> int:
        """Number of a kind, which is made once for the same arguments."""
        key = make.func, make.args
        if key not in self._made:
            self._made[key] = add_kind(self.kinds, make())
        return self._made[key]

    def _reading(self, number: int, slot: int) -> Kind:
        return reading_psum(self.kinds[number], slot)

    def _region(self, buffer: int, first: int, last: int, low: int, high: int) -> int:
        self.regions.append((buffer, first, last, low, high))
        return len(self.before.regions) + len(self.regions) - 1

    def _tile(self, memory: Memory, partitions: int, size: int, origin: int) -> int:
        self.tiles.append((memory, partitions, size, origin))
        return len(self.before.buffers) + len(self.tiles) - 1

    def _buffers(self) -> Buffers:
        table = np.array([tuple(int(value) for value in tile) for tile in self.tiles], np.int64)
        made = self.before.buffers.take(table[:, 3])
        made.memory[:] = table[:, 0]
        made.lines[:] = made.partitions[:] = table[:, 1]
        made.pitch_bytes[:] = table[:, 2]
        made.address[:] = -1
        made.role[:] = 0
        return made


def _repeated(body: Body, found: Ints) -> set[int]:
    """Buffers that one call fills and several read on all partitions."""
    written = body.rows[:, FIRST_WRITE:FIRST_READ]
    writers = np.bincount(body.regions[written[written >= 0], BUFFER], minlength=len(body.buffers))
    reads = body.rows[found[:, 0], FIRST_READ + found[:, 1]]
    readers = np.bincount(body.regions[reads, BUFFER], minlength=len(body.buffers))
    return set(np.flatnonzero((writers == 1) & (readers > 1)).tolist())


def _ones_times(partitions: int, elements: int, dtype: DType) -> Kind:
    """Ones, one to a partition, times a row."""
    halves = 2 if dtype is DType.F32 else 1
    flags = Flag.FP32_HALF if halves == 2 else Flag.NONE
    steps = []
    for half in range(halves):
        steps.append(Step(
            Engine.TENSOR, Opcode.LDWEIGHTS, dtype, dtype, Memory.SBUF, Memory.NONE, flags=flags,
            partitions=1, columns=partitions, elements=partitions,
        ))  # fmt: skip
        steps.append(Step(
            Engine.TENSOR, Opcode.MATMUL, dtype, DType.F32, Memory.SBUF, Memory.PSUM,
            flags=flags | (Flag.ACCUMULATE if half else Flag.NONE), partitions=1, columns=partitions,
            elements=elements, waits=(0, READS + 1), source=READS + 1,
            writes=(0,) if half == halves - 1 else (),
        ))  # fmt: skip
    return Kind("broadcast", tuple(steps), whole=True)


def _copy(partitions: int, elements: int, dtype: DType) -> Kind:
    step = Step(
        Engine.VECTOR, Opcode.TENSOR_COPY, DType.F32, dtype, Memory.PSUM, Memory.SBUF, partitions=partitions,
        elements=elements, waits=(0, READS), source=READS, writes=(0,),
    )  # fmt: skip
    return Kind("tensor_copy", (step,), engines=(Engine.SCALAR, Engine.VECTOR), whole=True)
