"""Elementwise instructions of the Vector engine on two tiles, and functions of one."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.nki.isa.accumulation import VECTOR, accumulate
from neuron_tools.nki.isa.enums import as_member, engine as engines
from neuron_tools.nki.isa.issue import refuse, shaped
from neuron_tools.nki.isa.prologue import instruction
from neuron_tools.nki.isa.table import Call, Instruction, Operand
from neuron_tools.nki.isa.tensor_scalar import Scalar
from neuron_tools.nki.operators import Operator, find_operator
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import column, exact, fits_out, single, write
from neuron_tools.nki.view_form import ViewForm
from neuron_tools.records.program import Engine, Memory, Opcode


def native_integers(forms: tuple[ViewForm, ...], engine: engines) -> bool:
    """Whether an operation runs on GpSimd with 32-bit integers: all are, none is in PSUM."""
    if not all(form.dtype.is_32bit_integer and form.memory is not Memory.PSUM for form in forms):
        return False
    return as_member(engines, engine) in (engines.unknown, engines.gpsimd)


def _engine_of(call: Call) -> Engine:
    """GpSimd for powers and 32-bit integers; else what the kernel names, or Vector."""
    engine = call.given["engine"]
    forms = (call.form("dst"), call.form("data1"), call.form("data2"))
    if find_operator(call.given["op"]).name == "power" or native_integers(forms, engine):
        return Engine.GPSIMD
    return engine.chosen or Engine.VECTOR


def _check_binary(call: Call) -> None:
    """Refuse an operator of one operand."""
    op = find_operator(call.given["op"])
    if op.arity == 1:
        raise refuse(
            f"tensor_tensor takes an operator of two operands, got {op.name}; call nisa.activation or "
            "nisa.tensor_scalar for one"
        )
    if op.name == "power" and call.given["engine"].chosen not in (None, Engine.GPSIMD):
        raise refuse(
            f"tensor_tensor computes power on GpSimd, not on {call.given['engine'].chosen.title}; leave the "
            "engine out"
        )


@instruction(Instruction(
    "tensor_tensor", Opcode.TENSOR_TENSOR, (Engine.VECTOR, Engine.GPSIMD),
    (Operand("dst", written=True, aligned=True), Operand("data1", aligned=True),
     Operand("data2", aligned=True)),
    same_size=(("data1", "data2"), ("dst", "data1")), apart=("data1", "data2"), operator="op",
    key=("op", "engine"), rule=_check_binary, select=_engine_of,
))  # fmt: skip
def tensor_tensor(
    dst: NkiTensor,
    data1: NkiTensor,
    data2: NkiTensor,
    op: Any,
    engine: engines = engines.unknown,
    name: str | None = None,
) -> None:
    """dst = data1 op data2, element by element, in fp32 (int32 and uint32 natively on GpSimd).

    Args:
        dst: (P, ...) result tile, SBUF or PSUM.
        data1: Tile of as many partitions and elements.
        data2: The same; not both in PSUM.
        op: Binary operator, `nl.add` and so on.
        engine: `engine.vector`, `engine.gpsimd`, or unknown.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    _combine(dst, data1, data2, find_operator(op), engine)


def _combine(dst: NkiTensor, data1: NkiTensor, data2: NkiTensor, op: Operator, engine: engines) -> None:
    if op.bitwise or native_integers((dst.form, data1.form, data2.form), engine):
        first = exact(data1)
        write(dst, op.function(first, shaped(exact(data2), first.shape)))
        return
    first, second = single(data1), single(data2)
    if second.shape != first.shape:
        second = shaped(second, first.shape)
    if op.has_out and fits_out(dst, first.shape):
        op.function(first, second, out=dst.array)
    else:
        write(dst, op.function(first, second))


@instruction(Instruction(
    "reciprocal", Opcode.RECIPROCAL, (Engine.VECTOR,), (Operand("dst", written=True), Operand("data")),
    same_size=(("dst", "data"),),
))  # fmt: skip
def reciprocal(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> None:
    """dst = 1 / data on the Vector engine.

    Args:
        dst: (P, ...) tile.
        data: Tile of as many elements.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    write(dst, np.float32(1.0) / single(data))


@instruction(Instruction(
    "exponential", Opcode.TENSOR_SCALAR, (Engine.VECTOR,),
    (Operand("dst", written=True), Operand("src"), Operand("max_value", optional=True, streamed=False),
     Operand("reduce_res", written=True, optional=True)),
    same_size=(("dst", "src"),), since=4,
))  # fmt: skip
def exponential(
    dst: NkiTensor,
    src: NkiTensor,
    max_value: Scalar = 0.0,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: Any = None,
    reduce_init: Scalar = 0.0,
    name: str | None = None,
) -> None:
    """dst = exp(src - max_value) on the Vector engine, with an optional sum (NeuronCore-v4).

    Args:
        dst: (P, ...) tile.
        src: Tile of as many elements.
        max_value: A number or a tile (P, 1).
        reduce_res: (P, 1) sum of the results.
        reduce_cmd: What to do with the accumulation registers.
        reduce_init: Their start under `load_reduce`.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule is broken, or the core is older than NeuronCore-v4.
    """
    values = single(src)
    result = np.exp(values - column(max_value, src.form.partitions, values.ndim))
    write(dst, result)
    accumulate(VECTOR, result, find_operator("add"), reduce_cmd, reduce_res, reduce_init)
