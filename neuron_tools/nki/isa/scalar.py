"""Instructions of the Scalar engine: activation functions with scale, bias and a running sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.backend.kinds import Kind
from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.isa.accumulation import SCALAR, accumulate
from neuron_tools.nki.isa.enums import reduce_cmd as commands
from neuron_tools.nki.isa.instruction import NkiInstruction, issued
from neuron_tools.nki.isa.issue import (
    compute_step,
    form_of,
    issue,
    ready,
    refuse,
    require_column,
    require_on_chip,
    require_same_size,
    require_start_partition,
)
from neuron_tools.nki.isa.tensor_scalar import Operand, apply
from neuron_tools.nki.operators import Operator, find_operator
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import Array, column, fits_out, single, write
from neuron_tools.nki.view_form import ViewForm
from neuron_tools.records.program import Engine, Flag, Opcode


def activation(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    bias: Operand = None,
    scale: Operand = 1.0,
    reduce_op: Any = None,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: commands = commands.idle,
    name: str | None = None,
) -> NkiInstruction:
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
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = tracing.OF_THREAD.trace
    if trace is None or trace.pending is not None:
        trace = ready()
    if dst.region < 0:
        dst.resolve()
    if data.region < 0:
        data.resolve()
    bias_form, scale_form = form_of(bias), form_of(scale)
    result_form = form_of(reduce_res)
    key = (activation, op, dst.form, data.form, bias_form, scale_form, result_form)
    kind = trace.kinds.get(key)
    if kind is None:
        kind = trace.add_kind(
            key, _activation_kind(dst.form, data.form, bias_form, scale_form, result_form, find_operator(op))
        )
    if bias_form is None and scale_form is None and result_form is None:
        if not data.storage.complete:  # type: ignore[union-attr]
            trace.check_read(data)
        trace.record(kind, dst.region, -1, data.region)
        if not dst.storage.complete:  # type: ignore[union-attr]
            trace.mark_written(dst)
    else:
        issue(trace, kind, dst, data, bias, scale, second=reduce_res)
    if trace.values:
        operator = find_operator(op)
        if reduce_res is None and reduce_cmd is commands.idle:
            _activate(dst, data, operator, bias, scale)
            return NkiInstruction(trace)
        result = operator.function(scaled(data, bias, scale))
        write(dst, result)
        reduction = find_operator(reduce_op if reduce_op is not None else "add")
        accumulate(trace, SCALAR, result, reduction, reduce_cmd, reduce_res)
    return NkiInstruction(trace)


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


def _activation_kind(
    dst: ViewForm, data: ViewForm, bias: ViewForm | None, scale: ViewForm | None, result: ViewForm | None,
    op: Operator,
) -> Kind:  # fmt: skip
    name = "activation"
    require_on_chip(name, dst=dst, data=data, bias=bias, scale=scale, reduce_res=result)
    require_same_size(name, dst, data, "dst and data")
    require_start_partition(name, dst=dst, data=data)
    require_column(name, "bias", bias, data.partitions)
    require_column(name, "scale", scale, data.partitions)
    require_column(name, "reduce_res", result, data.partitions)
    if op.arity != 1 and op.name != "prelu":
        raise refuse(f"{op.name} takes two operands and is no activation function")
    flags = Flag.REDUCES if result is not None else Flag.NONE
    function = op.name if op.name != "copy" else "identity"
    step = compute_step(Engine.SCALAR, Opcode.ACTIVATE, dst, data, flags=flags, activation=function)
    return Kind(name, (step,))


def activation_reduce(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    reduce_op: Any,
    reduce_res: NkiTensor,
    bias: Operand = None,
    scale: Operand = 1.0,
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
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    activation(dst, op, data, bias, scale, reduce_op, reduce_res, commands.reset_reduce, name)
    return issued()


def activate2(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    imm0: Operand,
    imm1: Operand,
    op0: Any,
    op1: Any,
    relu_param: Operand = 0.0,
    reverse0: bool = False,
    reverse1: bool = False,
    reduce_op: Any = None,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: commands = commands.idle,
    name: str | None = None,
) -> NkiInstruction:
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
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule is broken, or the core is older than NeuronCore-v4.
    """
    trace = ready()
    if trace.core.generation < 4:
        raise refuse(f"activate2 needs NeuronCore-v4 or newer, the target is {trace.core.name}")
    forms = form_of(dst), form_of(data), form_of(imm0), form_of(imm1), form_of(reduce_res)
    key = (activate2, op, op0, op1, *forms)
    kind = trace.kinds.get(key)
    operator = find_operator(op)
    if kind is None:
        kind = trace.add_kind(key, _activation_kind(dst.form, data.form, None, None, forms[4], operator))
    issue(trace, kind, dst, data, imm0, imm1, second=reduce_res)
    if trace.values:
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
        accumulate(trace, SCALAR, result, reduction, reduce_cmd, reduce_res)
    return NkiInstruction(trace)
