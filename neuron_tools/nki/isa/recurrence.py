"""Instructions of the Vector engine whose elements depend on those before them."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.backend.kinds import Kind
from neuron_tools.nki.isa.accumulation import VECTOR
from neuron_tools.nki.isa.enums import reduce_cmd as commands
from neuron_tools.nki.isa.instruction import NkiInstruction
from neuron_tools.nki.isa.issue import (
    compute_step,
    form_of,
    issue,
    ready,
    refuse,
    require_column,
    require_on_chip,
    require_same_size,
)
from neuron_tools.nki.isa.scan import scan
from neuron_tools.nki.isa.tensor_scalar import Operand, apply
from neuron_tools.nki.operators import Operator, find_operator
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.tracer import Tracer
from neuron_tools.nki.values import column, single, write
from neuron_tools.records.program import Engine, Memory, Opcode


def tensor_scalar_cumulative(
    dst: NkiTensor,
    src: NkiTensor,
    op0: Any,
    op1: Any,
    imm0: Operand,
    imm1: Operand = None,
    reduce_cmd: commands = commands.reset_reduce,
    name: str | None = None,
) -> NkiInstruction:
    """dst[i] = op1(src[i] op0 imm0, dst[i - 1]): a running reduction along the free dimensions.

    Args:
        dst: (P, ...) tile.
        src: Tile of as many elements; no 32-bit integers.
        op0: Arithmetic operator.
        op1: add, subtract, multiply, maximum or minimum.
        imm0: A number or a tile (P, 1).
        imm1: Start under `load_reduce`.
        reduce_cmd: Where the running value starts.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    forms = form_of(dst), form_of(src), form_of(imm0), form_of(imm1)
    key = (tensor_scalar_cumulative, op0, op1, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_on_chip("tensor_scalar_cumulative", dst=dst.form, src=src.form)
        require_same_size("tensor_scalar_cumulative", dst.form, src.form, "dst and src")
        step = compute_step(Engine.VECTOR, Opcode.TENSOR_TENSOR_SCAN, dst.form, src.form)
        kind = trace.add_kind(key, Kind("tensor_scalar_cumulative", (step,)))
    issue(trace, kind, dst, src, imm0, imm1)
    if trace.values:
        _cumulate(trace, dst, src, (find_operator(op0), imm0), find_operator(op1), (reduce_cmd, imm1))
    return NkiInstruction(trace)


def _cumulate(
    trace: Tracer, dst: NkiTensor, src: NkiTensor, first: tuple[Operator, Any], op1: Operator,
    start: tuple[commands, Any],
) -> None:  # fmt: skip
    values = single(src).reshape(src.form.partitions, -1)
    values = apply(first[0], values, column(first[1], values.shape[0], 2), False)
    held = trace.accumulators.get(VECTOR)
    if start[0] is commands.load_reduce:
        register = np.broadcast_to(column(start[1], values.shape[0], 2), (values.shape[0], 1))
    elif start[0] is commands.reduce and held is not None and held.shape[0] == values.shape[0]:
        register = held
    else:
        register = np.full((values.shape[0], 1), op1.identity, np.float32)
    result = np.empty_like(values)
    if op1.accumulate is not None and op1.name != "subtract":
        chain = np.concatenate([register.astype(np.float32), values], axis=1)
        result[:] = op1.accumulate(chain, axis=1)[:, 1:]
    else:
        state = register[:, 0].astype(np.float32)
        for position in range(values.shape[1]):
            state = op1.function(values[:, position], state)
            result[:, position] = state
    trace.accumulators[VECTOR] = result[:, -1:].copy()
    write(dst, result)


def tensor_tensor_scan(
    dst: NkiTensor,
    data0: NkiTensor,
    data1: NkiTensor,
    initial: Operand,
    op0: Any,
    op1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    name: str | None = None,
) -> NkiInstruction:
    """dst[i] = (data0[i] op0 dst[i - 1]) op1 data1[i] along the free dimension, fp32.

    Args:
        dst: (P, F) tile.
        data0: Tile of as many elements.
        data1: The same; not both in PSUM.
        initial: dst[-1]: a number or a tile (P, 1).
        op0: Arithmetic operator.
        op1: Arithmetic operator.
        reverse0: Swap the operands of `op0`.
        reverse1: Swap the operands of `op1`.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    forms = form_of(dst), form_of(data0), form_of(data1), form_of(initial)
    key = (tensor_tensor_scan, op0, op1, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_on_chip("tensor_tensor_scan", dst=dst.form, data0=data0.form, data1=data1.form)
        require_same_size("tensor_tensor_scan", data0.form, data1.form, "data0 and data1")
        require_same_size("tensor_tensor_scan", dst.form, data0.form, "dst and data0")
        require_column("tensor_tensor_scan", "initial", forms[3], dst.form.partitions)
        if data0.form.memory is Memory.PSUM and data1.form.memory is Memory.PSUM:
            raise refuse("tensor_tensor_scan cannot read both operands from PSUM; copy one to SBUF first")
        step = compute_step(Engine.VECTOR, Opcode.TENSOR_TENSOR_SCAN, dst.form, data0.form, data1.form)
        kind = trace.add_kind(key, Kind("tensor_tensor_scan", (step,)))
    issue(trace, kind, dst, data0, data1, initial)
    if trace.values:
        partitions = dst.form.partitions
        start = np.broadcast_to(column(initial, partitions, 2), (partitions, 1))[:, 0].astype(np.float32)
        result = scan(
            single(data0).reshape(partitions, -1), single(data1).reshape(partitions, -1), start,
            find_operator(op0), find_operator(op1), reverse0, reverse1,
        )  # fmt: skip
        write(dst, result)
    return NkiInstruction(trace)
