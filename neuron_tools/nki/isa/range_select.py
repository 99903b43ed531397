"""Selections that also reduce."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.nki.isa.accumulation import VECTOR, accumulate
from neuron_tools.nki.isa.enums import reduce_cmd as commands
from neuron_tools.nki.isa.issue import (
    FLOATS,
    refuse,
    require_comparisons,
    require_maximum,
    require_predicate,
    require_types,
    shaped,
)
from neuron_tools.nki.isa.prologue import instruction
from neuron_tools.nki.isa.table import Call, Instruction, Operand
from neuron_tools.nki.isa.tensor_scalar import Scalar
from neuron_tools.nki.operators import FP32_MINIMUM, find_operator
from neuron_tools.nki.selected import selected
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import column, exact, single, write
from neuron_tools.records.program import Engine, Opcode


def _check_range(call: Call) -> None:
    """Refuse operators that compare nothing, reductions and fills that the engine lacks, and other types."""
    comparisons = {name: call.given[name] for name in ("comp_op0", "comp_op1")}
    require_comparisons("range_select", **comparisons)
    require_maximum("range_select", call.given["reduce_op"])
    filled = call.given["on_false_value"]
    if np.float32(filled) != np.float32(FP32_MINIMUM) and not call.trace.older_dialect:
        raise refuse(
            f"range_select fills with the least fp32 number ({FP32_MINIMUM}), not with {filled}; leave "
            "on_false_value out, or select with nisa.select_reduce"
        )
    require_types("range_select", ("float32",), bound0=call.forms["bound0"], bound1=call.forms["bound1"])


def _check_predicate(call: Call) -> None:
    require_predicate("select_reduce", call.form("predicate"))
    require_maximum("select_reduce", call.given["reduce_op"])


@instruction(Instruction(
    "range_select", Opcode.RANGE_SELECT, (Engine.VECTOR,),
    (Operand("dst", written=True), Operand("on_true_tile", types=FLOATS),
     Operand("bound0", optional=True, streamed=False, column="dst"),
     Operand("bound1", optional=True, streamed=False, column="dst"),
     Operand("reduce_res", written=True, optional=True, column="dst")),
    same_size=(("dst", "on_true_tile"),), key=("comp_op0", "comp_op1", "reduce_op", "on_false_value"),
    rule=_check_range,
))  # fmt: skip
def range_select(
    dst: NkiTensor,
    on_true_tile: NkiTensor,
    comp_op0: Any,
    comp_op1: Any,
    bound0: NkiTensor,
    bound1: NkiTensor,
    reduce_cmd: commands = commands.reset_reduce,
    reduce_res: NkiTensor | None = None,
    reduce_op: Any = "maximum",
    range_start: int = 0,
    on_false_value: float = FP32_MINIMUM,
    name: str | None = None,
) -> None:
    """Keep elements whose index lies within two bounds per partition; fill the others.

    Args:
        dst: (P, ...) tile.
        on_true_tile: Tile of as many elements.
        comp_op0: Comparison of index and `bound0`.
        comp_op1: Comparison of index and `bound1`.
        bound0: (P, 1) fp32.
        bound1: (P, 1) fp32.
        reduce_cmd: What to do with the accumulation registers.
        reduce_res: (P, 1) maximum of the result.
        reduce_op: maximum.
        range_start: Index of the first element.
        on_false_value: The filling.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    values = single(on_true_tile).reshape(dst.form.partitions, -1)
    index = np.arange(range_start, range_start + values.shape[1], dtype=np.float32)[None, :]
    inside = find_operator(comp_op0).function(index, column(bound0, len(values), 2)) != 0
    inside &= find_operator(comp_op1).function(index, column(bound1, len(values), 2)) != 0
    result = selected(inside, values, on_false_value)
    write(dst, result)
    accumulate(VECTOR, result, find_operator(reduce_op), reduce_cmd, reduce_res)


@instruction(Instruction(
    "select_reduce", Opcode.SELECT_REDUCE, (Engine.VECTOR,),
    (Operand("dst", written=True), Operand("on_true"), Operand("predicate"),
     Operand("on_false", optional=True, streamed=False),
     Operand("reduce_res", written=True, optional=True, column="dst", types=FLOATS)),
    same_size=(("dst", "on_true"), ("dst", "predicate")), key=("reduce_op",), rule=_check_predicate,
))  # fmt: skip
def select_reduce(
    dst: NkiTensor,
    predicate: NkiTensor,
    on_true: NkiTensor,
    on_false: Scalar,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: commands = commands.idle,
    reduce_op: Any = "maximum",
    reverse_pred: bool = False,
    name: str | None = None,
) -> None:
    """dst = on_true where the predicate is not zero, else on_false; optionally the maximum of that.

    Args:
        dst: (P, ...) tile.
        predicate: Integer tile of as many elements.
        on_true: Tile of as many elements.
        on_false: A number or a tile (P, 1).
        reduce_res: (P, 1) maximum of the result.
        reduce_cmd: What to do with the accumulation registers.
        reduce_op: maximum.
        reverse_pred: Take `on_true` where the predicate is zero.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    values = single(on_true)
    chosen = shaped(exact(predicate), values.shape) != 0
    chosen = ~chosen if reverse_pred else chosen
    result = selected(chosen, values, column(on_false, dst.form.partitions, values.ndim))
    write(dst, result)
    accumulate(VECTOR, result, find_operator(reduce_op), reduce_cmd, reduce_res)
