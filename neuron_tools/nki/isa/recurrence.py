"""Instructions of the Vector engine whose elements depend on those before them."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.nki.isa.accumulation import VECTOR
from neuron_tools.nki.isa.enums import reduce_cmd as commands
from neuron_tools.nki.isa.issue import FLOATS, refuse
from neuron_tools.nki.isa.prologue import instruction
from neuron_tools.nki.isa.scan import scan
from neuron_tools.nki.isa.table import Call, Instruction, Operand
from neuron_tools.nki.isa.tensor_scalar import Scalar, apply, check_arithmetic
from neuron_tools.nki.operators import Operator, find_operator
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.tracer import active
from neuron_tools.nki.values import column, single, write
from neuron_tools.records.program import Engine, Opcode

_UP_TO_16_BITS = (*FLOATS, "int16", "uint16", "int8", "uint8")
_ACCUMULATE = ("add", "subtract", "multiply", "maximum", "minimum")


def _check_operators(call: Call) -> None:
    """Refuse bit patterns, and accumulating by what the engine has no register for."""
    check_arithmetic(call)
    op = find_operator(call.given["op1"])
    if op.name not in _ACCUMULATE:
        raise refuse(
            f"tensor_scalar_cumulative accumulates by {', '.join(_ACCUMULATE)}, not by {op.name}; scan with "
            "nisa.tensor_tensor_scan"
        )


@instruction(Instruction(
    "tensor_scalar_cumulative", Opcode.TENSOR_TENSOR_SCAN, (Engine.VECTOR,),
    (Operand("dst", written=True, types=_UP_TO_16_BITS), Operand("src", types=_UP_TO_16_BITS),
     Operand("imm0", optional=True, streamed=False), Operand("imm1", optional=True, streamed=False)),
    same_size=(("dst", "src"),), key=("op0", "op1"), rule=_check_operators,
))  # fmt: skip
def tensor_scalar_cumulative(
    dst: NkiTensor,
    src: NkiTensor,
    op0: Any,
    op1: Any,
    imm0: Scalar,
    imm1: Scalar = None,
    reduce_cmd: commands = commands.reset_reduce,
    name: str | None = None,
) -> None:
    """dst[i] = op1(src[i] op0 imm0, dst[i - 1]): a running reduction along the free dimensions.

    Args:
        dst: (P, ...) tile.
        src: Tile of as many elements; no 32-bit integers.
        op0: Arithmetic operator.
        op1: add, subtract, multiply, maximum or minimum.
        imm0: A number or a tile (P, 1).
        imm1: Start under `load_reduce`.
        reduce_cmd: Where the running value starts.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    _cumulate(dst, src, (find_operator(op0), imm0), find_operator(op1), (reduce_cmd, imm1))


def _cumulate(
    dst: NkiTensor, src: NkiTensor, first: tuple[Operator, Any], op1: Operator, start: tuple[commands, Any]
) -> None:
    registers = active().accumulators
    values = single(src).reshape(src.form.partitions, -1)
    values = apply(first[0], values, column(first[1], values.shape[0], 2), False)
    held = registers.get(VECTOR)
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
    registers[VECTOR] = result[:, -1:].copy()
    write(dst, result)


@instruction(Instruction(
    "tensor_tensor_scan", Opcode.TENSOR_TENSOR_SCAN, (Engine.VECTOR,),
    (Operand("dst", written=True), Operand("data0"), Operand("data1"),
     Operand("initial", optional=True, streamed=False, column="dst")),
    same_size=(("data0", "data1"), ("dst", "data0")), apart=("data0", "data1"), key=("op0", "op1"),
    rule=check_arithmetic,
))  # fmt: skip
def tensor_tensor_scan(
    dst: NkiTensor,
    data0: NkiTensor,
    data1: NkiTensor,
    initial: Scalar,
    op0: Any,
    op1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    name: str | None = None,
) -> None:
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
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    partitions = dst.form.partitions
    start = np.broadcast_to(column(initial, partitions, 2), (partitions, 1))[:, 0].astype(np.float32)
    result = scan(
        single(data0).reshape(partitions, -1), single(data1).reshape(partitions, -1), start,
        find_operator(op0), find_operator(op1), reverse0, reverse1,
    )  # fmt: skip
    write(dst, result)
