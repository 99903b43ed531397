"""Results that one tensor_tensor reads lie in PSUM, from where it reads twice as fast.

A tensor_tensor of fp32 takes two cycles an element where both operands lie in SBUF, and one where one of
them lies in PSUM (nki.isa.tensor_tensor). Counters of NKIBench on Trn1 show that the compiler knows: in adamw
three of the seven tensor_scalar results are written to PSUM, one for each tensor_tensor that has one of them
as its latest operand. Reciprocals stay in SBUF (silu, adamw). No other row needs the rule, and the traces of
Trn2 show none of it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.backend.body import (
    BUFFER,
    FIRST_BYTE,
    FIRST_LINE,
    FIRST_READ,
    FIRST_WRITE,
    KIND,
    LAST_BYTE,
    LAST_LINE,
    SCRATCH,
    Body,
)
from neuron_tools.backend.kinds import Kind, Step
from neuron_tools.backend.schedule import add_kind
from neuron_tools.records.program import DType, Engine, Flag, Memory, Opcode

COUNTED_GENERATION = 2
"""The generation of whose compiled kernels there are counters."""
_MAKERS = (Opcode.TENSOR_SCALAR, Opcode.TENSOR_TENSOR, Opcode.TENSOR_TENSOR_SCAN)
_OPERANDS = 2


def keep_in_psum(body: Body) -> Body:
    """The body with results in PSUM that one tensor_tensor reads."""
    if body.core.generation != COUNTED_GENERATION or not len(body) or body.is_placed:
        return body
    readers, slots, makers = _found(body)
    if not len(readers):
        return body
    rows, kinds, buffers = body.rows.copy(), list(body.kinds), body.buffers.take(np.arange(len(body.buffers)))
    buffers.memory[_written(body)[makers]] = int(Memory.PSUM)
    for number in np.unique(rows[makers, KIND]).tolist():
        here = makers[rows[makers, KIND] == number]
        rows[here, KIND] = add_kind(kinds, _writing_psum(kinds[number]))
    for slot in range(_OPERANDS):
        there = readers[slots == slot]
        for number in np.unique(rows[there, KIND]).tolist():
            here = there[rows[there, KIND] == number]
            rows[here, KIND] = add_kind(kinds, reading_psum(kinds[number], slot))
    return replace(body, rows=rows, kinds=kinds, buffers=buffers)


def reading_psum(kind: Kind, slot: int) -> Kind:
    """The call with one operand in PSUM, which GpSimd cannot reach."""
    step = kind.steps[0]
    flags = step.flags
    if step.opcode is Opcode.TENSOR_TENSOR:
        flags ^= Flag.SECOND_OPERAND_PSUM
    first = Memory.PSUM if slot == 0 else step.source_memory
    engines = tuple(engine for engine in kind.engines if engine is not Engine.GPSIMD)
    return replace(
        kind, steps=(replace(step, flags=flags, source_memory=first),), engines=engines, straight=False
    )


def reads_one_in_psum(step: Step) -> bool:
    """Whether a tensor_tensor has one operand in PSUM; a second one there would make it slow again."""
    return step.opcode is Opcode.TENSOR_TENSOR and Flag.SECOND_OPERAND_PSUM in step.flags


def _writing_psum(kind: Kind) -> Kind:
    engines = tuple(engine for engine in kind.engines if engine is not Engine.GPSIMD)
    return replace(
        kind, steps=(replace(kind.steps[0], destination_memory=Memory.PSUM),), engines=engines, straight=False
    )


def _found(body: Body) -> tuple[Ints, Ints, Ints]:
    """Calls of tensor_tensor, the operand of each that goes to PSUM, and the call that makes it."""
    reads = body.rows[:, FIRST_READ : FIRST_READ + _OPERANDS]
    readers = np.flatnonzero(
        (body.kind_column([_adds(kind) for kind in body.kinds]) != 0) & (reads >= 0).all(1)
    )
    maker = _only_maker(body)[body.regions[reads[readers], BUFFER]]
    slots = maker.argmax(axis=1)  # the operand made last
    made = maker.max(axis=1, initial=-1)
    kept = made >= 0
    makes = body.kind_column([_makes(kind) for kind in body.kinds]) != 0
    kept &= makes[made] & (_elements(body)[made] == _elements(body)[readers])
    return readers[kept], slots[kept], made[kept]


def _elements(body: Body) -> Ints:
    """Elements of all partitions together that each call's first step works on."""
    return body.kind_column(
        [k.steps[0].partitions * k.steps[0].elements if k.steps else 0 for k in body.kinds]
    )


def _only_maker(body: Body) -> Ints:
    """The call that writes all of each buffer, where it alone does and one operand reads it; else -1."""
    buffers = body.buffers
    count = len(buffers)
    used = [np.bincount(_touched(body, slots), minlength=count) for slots in (_WRITES, _READS)]
    writes = body.rows[:, FIRST_WRITE]
    at = np.flatnonzero(writes >= 0)
    maker = np.full(count, -1, np.int64)
    maker[_written(body)[at]] = at
    region = body.regions[writes[np.maximum(maker, 0)]]
    whole = (region[:, FIRST_LINE] == 0) & (region[:, LAST_LINE] == buffers.lines)
    whole &= (region[:, FIRST_BYTE] == 0) & (region[:, LAST_BYTE] == buffers.pitch_bytes)
    fits = (buffers.memory == int(Memory.SBUF)) & (buffers.role == SCRATCH)
    fits &= (buffers.lines == buffers.partitions) & (buffers.pitch_bytes <= body.core.psum_bank_bytes)
    return np.where(whole & fits & (used[0] == 1) & (used[1] == 1), maker, np.minimum(maker, -1))


_WRITES, _READS = slice(FIRST_WRITE, FIRST_READ), slice(FIRST_READ, None)


def _touched(body: Body, slots: slice) -> Ints:
    """Buffers that operands name, as often as they do."""
    regions = body.rows[:, slots]
    return np.asarray(body.regions[regions[regions >= 0], BUFFER])


def _written(body: Body) -> Ints:
    """Buffer that each call writes first."""
    return np.asarray(body.regions[np.maximum(body.rows[:, FIRST_WRITE], 0), BUFFER])


def _makes(kind: Kind) -> bool:
    """Whether a result may lie in PSUM instead of SBUF."""
    if len(kind.steps) != 1 or kind.steps[0].opcode not in _MAKERS:
        return False
    step = kind.steps[0]
    fixed_on_gpsimd = step.engine is Engine.GPSIMD and not kind.engines
    return step.destination_memory is Memory.SBUF and step.output_dtype is DType.F32 and not fixed_on_gpsimd


def _adds(kind: Kind) -> bool:
    """Whether it is a tensor_tensor with both operands in SBUF that is slower for it."""
    if len(kind.steps) != 1 or kind.steps[0].opcode is not Opcode.TENSOR_TENSOR:
        return False
    step = kind.steps[0]
    in_sbuf = step.source_memory is Memory.SBUF and not reads_one_in_psum(step)
    fixed_on_gpsimd = step.engine is Engine.GPSIMD and not kind.engines
    return in_sbuf and not fixed_on_gpsimd
