"""Instructions of the Scalar engine: activation functions with scale, bias and a running sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.arrays import Array
from neuron_tools.backend.kinds import Kind
from neuron_tools.nki.isa.accumulation import SCALAR, accumulate
from neuron_tools.nki.isa.enums import engine as engines, reduce_cmd as commands
from neuron_tools.nki.isa.instruction import NkiInstruction, issued
from neuron_tools.nki.isa.issue import (
    refuse,
)
from neuron_tools.nki.isa.prologue import instruction
from neuron_tools.nki.isa.table import Call, Instruction, Operand
from neuron_tools.nki.isa.tensor_scalar import Scalar, apply
from neuron_tools.nki.operators import Operator, find_operator
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import column, fits_out, single, write
from neuron_tools.records.program import Engine, Flag, Opcode


def _check_function(call: Call) -> None:
    """Refuse operators of two operands."""
    op = find_operator(call.given["op"])
    if op.arity != 1 and op.name != "prelu":
        raise refuse(f"{op.name} takes two operands and is no activation function")


def _check_engine(call: Call) -> None:
    """Refuse GpSimd where it is too old, or where the Scalar engine's registers are used."""
    _check_function(call)
    reduction = call.given.get("reduce_op")
    if reduction is not None and find_operator(reduction).name != "add":
        raise refuse(
            f"activation sums its results, but reduce_op is {find_operator(reduction).name}; use nl.add, or "
            "reduce with nisa.tensor_reduce"
        )
    if call.engine is not Engine.GPSIMD:
        return
    if call.trace.core.generation < 4:
        raise refuse(f"{call.record.name} runs on GpSimd from NeuronCore-v4 on, the target is "
                     f"{call.trace.core.name}; leave engine out")  # fmt: skip
    if call.forms["reduce_res"] is not None or call.given["reduce_cmd"] is not commands.idle:
        raise refuse(f"{call.record.name} reduces on the Scalar engine only; leave engine out")


def _function(call: Call) -> Kind:
    name = find_operator(call.given["op"]).name
    flags = Flag.REDUCES if call.forms["reduce_res"] is not None else Flag.NONE
    return call.kind(flags=flags, activation=name if name != "copy" else "identity")


@instruction(Instruction(
    "activation", Opcode.ACTIVATE, (Engine.SCALAR, Engine.GPSIMD),
    (Operand("dst", written=True, aligned=True), Operand("data", aligned=True),
     Operand("bias", optional=True, streamed=False, column="data"),
     Operand("scale", optional=True, streamed=False, column="data", types=("float32",)),
     Operand("reduce_res", written=True, optional=True, column="data")),
    same_size=(("dst", "data"),), key=("op", "engine", "reduce_cmd", "reduce_op"), rule=_check_engine,
    build=_function,
))  # fmt: skip
def activation(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    bias: Scalar = None,
    scale: Scalar = 1.0,
    reduce_op: Any = None,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: commands = commands.idle,
    name: str | None = None,
    engine: engines = engines.unknown,
) -> None:
    """dst = op(data * scale + bias) in fp32, with an optional running sum along the free dimensions.

    Args:
        dst: (P, ...) tile, SBUF or PSUM.
        op: Activation function: `nl.exp`, `nl.gelu`, ...
        data: Tile of as many elements.
        bias: A number or a tile (P, 1).
        scale: A number or a tile (P, 1).
        reduce_op: `nl.add`.
        reduce_res: (P, 1) tile for the registers.
        reduce_cmd: What to do with the accumulation registers.
        name: The profile's name for the call.
        engine: Scalar, or from NeuronCore-v4 on GpSimd, which does not reduce.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    operator = find_operator(op)
    if reduce_res is None and reduce_cmd is commands.idle:
        _activate(dst, data, operator, bias, scale)
        return
    result = operator.function(scaled(data, bias, scale))
    write(dst, result)
    reduction = find_operator(reduce_op if reduce_op is not None else "add")
    accumulate(SCALAR, result, reduction, reduce_cmd, reduce_res)


def _activate(dst: NkiTensor, data: NkiTensor, op: Operator, bias: Any, scale: Any) -> None:
    values = scaled(data, bias, scale)
    if op.has_out and fits_out(dst, values.shape):
        op.function(values, out=dst.array)
    else:
        write(dst, op.function(values))


def scaled(data: NkiTensor, bias: Any, scale: Any) -> Array:
    """data * scale + bias in fp32; the storage itself where nothing is scaled or added."""
    values = single(data)
    partitions, rank = data.form.partitions, max(values.ndim, 1)
    own = values
    if not (isinstance(scale, (int, float)) and scale == 1.0) and scale is not None:
        values = values * column(scale, partitions, rank)
    if bias is not None and not (isinstance(bias, (int, float)) and bias == 0.0):
        offset = column(bias, partitions, rank)
        if values is own:
            values = values + offset
        else:
            values += offset
    return values


def activation_reduce(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    reduce_op: Any,
    reduce_res: NkiTensor,
    bias: Scalar = None,
    scale: Scalar = 1.0,
    name: str | None = None,
) -> NkiInstruction:
    """`activation` that also writes the reduction of its result: `reset_reduce` into `reduce_res`.

    Args:
        dst: (P, ...) tile.
        op: Activation function.
        data: Tile of as many elements.
        reduce_op: `nl.add`.
        reduce_res: (P, 1) tile.
        bias: A number or a tile (P, 1).
        scale: A number or a tile (P, 1).
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    activation(dst, op, data, bias, scale, reduce_op, reduce_res, commands.reset_reduce, name)
    return issued()


@instruction(Instruction(
    "activate2", Opcode.ACTIVATE, (Engine.SCALAR, Engine.GPSIMD),
    (Operand("dst", written=True, aligned=True), Operand("data", aligned=True),
     Operand("imm0", optional=True, streamed=False), Operand("imm1", optional=True, streamed=False),
     Operand("reduce_res", written=True, optional=True, column="data")),
    same_size=(("dst", "data"),), key=("op", "op0", "op1", "engine", "reduce_cmd"), since=4,
    rule=_check_engine, build=_function,
))  # fmt: skip
def activate2(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    imm0: Scalar,
    imm1: Scalar,
    op0: Any,
    op1: Any,
    relu_param: Scalar = 0.0,
    reverse0: bool = False,
    reverse1: bool = False,
    reduce_op: Any = None,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: commands = commands.idle,
    name: str | None = None,
    engine: engines = engines.unknown,
) -> None:
    """dst = op((data op0 imm0) op1 imm1), with an optional reduction (NeuronCore-v4).

    Args:
        dst: (P, ...) tile.
        op: Activation function.
        data: Tile of as many elements.
        imm0: A number or a tile (P, 1).
        imm1: A number or a tile (P, 1).
        op0: Arithmetic operator or `nl.bypass`.
        op1: Arithmetic operator or `nl.bypass`.
        relu_param: Slope of `nl.prelu`.
        reverse0: Swap the operands of `op0`.
        reverse1: Swap the operands of `op1`.
        reduce_op: add, maximum, minimum, abs_max or abs_min.
        reduce_res: (P, 1) tile for the registers.
        reduce_cmd: What to do with the accumulation registers.
        name: The profile's name for the call.
        engine: Scalar or GpSimd, which does not reduce.

    Raises:
        NkiValidationError: A rule is broken, or the core is older than NeuronCore-v4.
    """
    operator = find_operator(op)
    values = single(data)
    for given, immediate, reverse in ((op0, imm0, reverse0), (op1, imm1, reverse1)):
        if given is not None and find_operator(given).name != "bypass":
            operand = column(immediate, data.form.partitions, values.ndim)
            values = apply(find_operator(given), values, operand, reverse)
    if operator.name == "prelu":
        slope = column(relu_param, data.form.partitions, values.ndim)
        result = np.where(values >= 0, values, values * slope)
    else:
        result = operator.function(values)
    write(dst, result)
    reduction = find_operator(reduce_op if reduce_op is not None else "add")
    accumulate(SCALAR, result, reduction, reduce_cmd, reduce_res)
