"""What Vector and Scalar read next stays in PSUM: the copy of a product to SBUF falls away.

In traces of fused attention on Trn2 maxima and exponentials read four of the scores' tiles where Tensor left
them: all of them at a sequence of 512, every other one at 1,024, in both element types. So no more than half
of the eight banks hold what waits; the rest is copied. Copies that feed a store, a product or a cast stay.
Generations of which there are no traces keep them all.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.backend.body import BUFFER, FIRST_READ, FIRST_WRITE, KIND, SCRATCH, Body
from neuron_tools.backend.in_psum import reading_psum
from neuron_tools.backend.kinds import Kind
from neuron_tools.backend.queues import TRACED_GENERATION
from neuron_tools.backend.schedule import add_kind
from neuron_tools.records.program import Engine, Opcode

_READERS = (Opcode.TENSOR_REDUCE, Opcode.ACTIVATE, Opcode.TENSOR_SCALAR)


def read_in_psum(body: Body) -> Body:
    """The body without copies from PSUM whose readers can read there."""
    from neuron_tools.backend.psum_reads_kernel import find_reads

    if body.core.generation != TRACED_GENERATION or not body.is_open:
        return body
    copies = (body.kind_column([_only_copies(kind) for kind in body.kinds]) != 0) & _of_whole_banks(body)
    if not copies.any():
        return body
    reads = body.kind_column([_reads(kind) for kind in body.kinds]) != 0
    target = find_reads(body.rows, body.regions, copies, reads, len(body.buffers), body.core.psum_banks // 2)
    return _reading(body, target) if (target >= 0).any() else body


def _only_copies(kind: Kind) -> bool:
    """Whether it copies from PSUM to SBUF, casts nothing, and may run on several engines."""
    step = kind.steps[0] if kind.leaves_psum else None
    return step is not None and step.input_dtype == step.output_dtype and bool(kind.engines)


def _reads(kind: Kind) -> bool:
    """Whether its first operand may lie in PSUM as well."""
    if len(kind.steps) != 1 or kind.steps[0].opcode not in _READERS:
        return False
    return kind.steps[0].engine is not Engine.GPSIMD or bool(kind.engines)


def _of_whole_banks(body: Body) -> Ints:
    """Whether each call reads all of a tile of at most a bank, and writes to a tile without a fixed use."""
    buffers = body.buffers
    source = np.maximum(body.rows[:, FIRST_READ], 0)
    whole = body.covers_tile[source]
    whole &= buffers.pitch_bytes[body.regions[source, BUFFER]] <= body.core.psum_bank_bytes
    into = body.regions[np.maximum(body.rows[:, FIRST_WRITE], 0), BUFFER]
    return np.asarray(whole & (buffers.role[into] == SCRATCH) & (body.rows[:, FIRST_READ] >= 0))


def _reading(body: Body, copy_of: Ints) -> Body:
    """The body in which calls read what the copies that fall away read.

    Args:
        copy_of: (calls,) the copy whose result each reads no more; its own number for the copy; -1: none.
    """
    rows, kinds = body.rows.copy(), list(body.kinds)
    readers = np.flatnonzero((copy_of >= 0) & (copy_of != np.arange(len(rows))))
    rows[readers, FIRST_READ] = body.rows[copy_of[readers], FIRST_READ]
    for number in np.unique(rows[readers, KIND]).tolist():
        here = readers[rows[readers, KIND] == number]
        rows[here, KIND] = add_kind(kinds, reading_psum(kinds[number], 0))
    kept = copy_of != np.arange(len(rows))
    return replace(body, rows=rows, kinds=kinds).ordered_by(np.flatnonzero(kept))
