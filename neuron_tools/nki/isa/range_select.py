"""Selections that also reduce."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.backend.kinds import Kind
from neuron_tools.nki.isa.accumulation import VECTOR, accumulate
from neuron_tools.nki.isa.enums import reduce_cmd as commands
from neuron_tools.nki.isa.instruction import NkiInstruction
from neuron_tools.nki.isa.issue import (
    compute_step,
    form_of,
    issue,
    ready,
    require_column,
    require_on_chip,
    require_same_size,
    shaped,
)
from neuron_tools.nki.isa.tensor_scalar import Operand
from neuron_tools.nki.operators import FP32_MINIMUM, find_operator
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import column, exact, single, write
from neuron_tools.records.program import Engine, Opcode


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
) -> NkiInstruction:
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
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    forms = form_of(dst), form_of(on_true_tile), form_of(bound0), form_of(bound1), form_of(reduce_res)
    key = (range_select, comp_op0, comp_op1, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_on_chip("range_select", dst=dst.form, on_true_tile=on_true_tile.form)
        require_same_size("range_select", dst.form, on_true_tile.form, "dst and on_true_tile")
        require_column("range_select", "bound0", forms[2], dst.form.partitions)
        require_column("range_select", "bound1", forms[3], dst.form.partitions)
        step = compute_step(Engine.VECTOR, Opcode.RANGE_SELECT, dst.form, on_true_tile.form)
        kind = trace.add_kind(key, Kind("range_select", (step,)))
    issue(trace, kind, dst, on_true_tile, bound0, bound1, second=reduce_res)
    if trace.values:
        values = single(on_true_tile).reshape(dst.form.partitions, -1)
        index = np.arange(range_start, range_start + values.shape[1], dtype=np.float32)[None, :]
        inside = find_operator(comp_op0).function(index, column(bound0, len(values), 2)) != 0
        inside &= find_operator(comp_op1).function(index, column(bound1, len(values), 2)) != 0
        result = np.where(inside, values, np.float32(on_false_value))
        write(dst, result)
        accumulate(trace, VECTOR, result, find_operator(reduce_op), reduce_cmd, reduce_res)
    return NkiInstruction(trace)


def select_reduce(
    dst: NkiTensor,
    predicate: NkiTensor,
    on_true: NkiTensor,
    on_false: Operand,
    reduce_res: NkiTensor | None = None,
    reduce_cmd: commands = commands.idle,
    reduce_op: Any = "maximum",
    reverse_pred: bool = False,
    name: str | None = None,
) -> NkiInstruction:
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
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    forms = form_of(dst), form_of(predicate), form_of(on_true), form_of(on_false), form_of(reduce_res)
    key = (select_reduce, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_on_chip("select_reduce", dst=dst.form, predicate=predicate.form, on_true=on_true.form)
        require_same_size("select_reduce", dst.form, on_true.form, "dst and on_true")
        require_same_size("select_reduce", dst.form, predicate.form, "dst and predicate")
        step = compute_step(Engine.VECTOR, Opcode.SELECT_REDUCE, dst.form, on_true.form, predicate.form)
        kind = trace.add_kind(key, Kind("select_reduce", (step,)))
    issue(trace, kind, dst, on_true, predicate, on_false, second=reduce_res)
    if trace.values:
        values = single(on_true)
        chosen = shaped(exact(predicate), values.shape) != 0
        chosen = ~chosen if reverse_pred else chosen
        result = np.where(chosen, values, column(on_false, dst.form.partitions, values.ndim))
        write(dst, result.astype(np.float32))
        accumulate(trace, VECTOR, result, find_operator(reduce_op), reduce_cmd, reduce_res)
    return NkiInstruction(trace)
