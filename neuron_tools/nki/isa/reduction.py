"""Instructions that reduce, scan, search and select along the free dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.isa.accumulation import VECTOR, accumulate
from neuron_tools.nki.isa.elementwise import Operand, apply
from neuron_tools.nki.isa.enums import reduce_cmd as commands
from neuron_tools.nki.isa.issue import (
    compute_step,
    form_of,
    issue,
    ready,
    refuse,
    require_column,
    require_on_chip,
    require_same_size,
    shaped,
)
from neuron_tools.nki.isa.scan import scan
from neuron_tools.nki.kinds import Kind
from neuron_tools.nki.operators import FP32_MINIMUM, Operator, find_operator
from neuron_tools.nki.tensor import NkiTensor, ViewForm
from neuron_tools.nki.tracer import Tracer
from neuron_tools.nki.values import Array, column, exact, single, write
from neuron_tools.simulator.program import Engine, Flag, Memory, Opcode

_LARGEST_SEARCH = 16384
_WIDTH = 8


def tensor_reduce(
    dst: NkiTensor,
    op: Any,
    data: NkiTensor,
    axis: int | Sequence[int],
    negate: bool = False,
    keepdims: bool = False,
    name: str | None = None,
) -> None:
    """dst = reduction of `data` over its last free dimensions, in fp32.

    Args:
        dst: (P, kept dimensions) tile.
        op: `nl.add`, `nl.maximum`, ...; a bitwise operator for integers.
        data: (P, ...) tile.
        axis: The dimensions to reduce, the last ones. One number is that axis; where it is not the last and
            `dst` has the size for it, it is how many of the last ones.
        negate: Multiply the result by -1.
        keepdims: Keep reduced dimensions with size 1.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = tracing._ACTIVE
    if trace is None or trace.pending is not None:
        trace = ready()
    if dst.region < 0:
        dst.resolve()
    if data.region < 0:
        data.resolve()
    axes = _trailing(axis, data, dst) if isinstance(axis, int) else tuple(int(a) for a in axis)
    key = (tensor_reduce, op, dst.form, data.form, axes)
    kind = trace.kinds.get(key)
    if kind is None:
        kind = trace.add_kind(key, _reduce_kind(trace, dst.form, data.form, find_operator(op), axes))
    issue(trace, kind, dst, data)
    if trace.values:
        operator = find_operator(op)
        values = exact(data) if operator.bitwise else single(data)
        axes = tuple(a % values.ndim for a in axes)
        assert operator.reduce is not None
        result = operator.reduce(values, axis=axes if len(axes) > 1 else axes[0])
        write(dst, -result if negate else result)


def _trailing(axis: int, data: NkiTensor, dst: NkiTensor) -> tuple[int, ...]:
    """The reduced axes: a number before the last axis counts how many of the last ones, if `dst` fits."""
    shape = data.shape
    rank = len(shape)
    if not 0 < axis < rank - 1:
        return (axis,)
    kept = math.prod(shape[: rank - axis])
    others = data.size // shape[axis]
    return tuple(range(rank - axis, rank)) if dst.size == kept != others else (axis,)


def _reduce_kind(trace: Tracer, dst: ViewForm, data: ViewForm, op: Operator, axes: tuple[int, ...]) -> Kind:
    require_on_chip("tensor_reduce", dst=dst, data=data)
    rank = len(data.shape)
    reduced = sorted(a % rank if -rank <= a < rank else rank for a in axes)
    if not reduced or reduced[-1] >= rank:
        raise refuse(f"tensor_reduce: axis {axes} is outside shape {data.shape}")
    if op.reduce is None:
        raise refuse(f"tensor_reduce cannot reduce with {op.name}")
    if reduced[0] == 0 and not trace.older_dialect:
        raise refuse(
            "tensor_reduce reduces free dimensions only; turn the tile first (nisa.nc_transpose) or multiply "
            "it with ones (nisa.nc_matmul) to reduce over partitions"
        )
    if reduced != list(range(rank - len(reduced), rank)) and not trace.older_dialect:
        raise refuse(f"tensor_reduce reduces the last dimensions, got axis {axes} of shape {data.shape}")
    kept = 1
    for index, extent in enumerate(data.shape):
        kept *= 1 if index in reduced else extent
    if dst.size != kept:
        raise refuse(
            f"tensor_reduce of shape {data.shape} over {axes} leaves {kept} elements, but dst has shape "
            f"{dst.shape}"
        )
    engine = Engine.GPSIMD if reduced[0] == 0 else Engine.VECTOR
    opcode = Opcode.PARTITION_REDUCE if reduced[0] == 0 else Opcode.TENSOR_REDUCE
    return Kind("tensor_reduce", (compute_step(engine, opcode, dst, data, elements=data.elements),))


def tensor_scalar_reduce(
    dst: NkiTensor,
    data: NkiTensor,
    op0: Any,
    operand0: Operand,
    reduce_op: Any,
    reduce_res: NkiTensor | None = None,
    reverse0: bool = False,
    reduce_cmd: commands = commands.reset_reduce,
    reduce_init: Operand = None,
    reduce_res_negate: bool = False,
    name: str | None = None,
) -> None:
    """dst = data op0 operand0, and reduce_res = the reduction of that over all free dimensions.

    Args:
        dst: (P, ...) tile.
        data: Tile of as many elements.
        op0: Arithmetic operator.
        operand0: A number or a tile (P, 1).
        reduce_op: add, multiply, maximum or minimum.
        reduce_res: (P, 1) result of the reduction.
        reverse0: Compute `operand0 op0 data`.
        reduce_cmd: What to do with the accumulation registers.
        reduce_init: Their start under `load_reduce`.
        reduce_res_negate: Multiply the reduction by -1.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    forms = form_of(dst), form_of(data), form_of(operand0), form_of(reduce_res)
    key = (tensor_scalar_reduce, op0, reduce_op, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_on_chip("tensor_scalar_reduce", dst=dst.form, data=data.form, reduce_res=forms[3])
        require_same_size("tensor_scalar_reduce", dst.form, data.form, "dst and data")
        require_column("tensor_scalar_reduce", "operand0", forms[2], data.form.partitions)
        step = compute_step(Engine.VECTOR, Opcode.TENSOR_SCALAR, dst.form, data.form, flags=Flag.REDUCES)
        kind = trace.add_kind(key, Kind("tensor_scalar_reduce", (step,)))
    issue(trace, kind, dst, data, operand0, second=reduce_res)
    if trace.values:
        values = single(data)
        operand = column(operand0 if operand0 is not None else 0.0, data.form.partitions, values.ndim)
        result = apply(find_operator(op0), values, operand, reverse0)
        write(dst, result)
        accumulate(trace, VECTOR, result, find_operator(reduce_op), reduce_cmd, reduce_res, reduce_init,
                   reduce_res_negate)  # fmt: skip


def tensor_scalar_cumulative(
    dst: NkiTensor,
    src: NkiTensor,
    op0: Any,
    op1: Any,
    imm0: Operand,
    imm1: Operand = None,
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


def bn_stats(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> None:
    """Count, mean and variance x count of the even and of the odd elements of each partition.

    Args:
        dst: (P, 6) tile.
        data: (P, N) tile, N <= 512.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    forms = form_of(dst), form_of(data)
    key = (bn_stats, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_on_chip("bn_stats", dst=dst.form, data=data.form)
        limit = trace.core.matmul_moving_columns
        if data.form.elements > limit:
            raise refuse(f"bn_stats takes at most {limit} elements per partition, got {data.form.elements}")
        if dst.form.elements != 6:
            raise refuse(f"bn_stats gives 6 elements per partition, but dst has shape {dst.shape}")
        step = compute_step(Engine.VECTOR, Opcode.BN_STATS, dst.form, data.form)
        kind = trace.add_kind(key, Kind("bn_stats", (step,)))
    issue(trace, kind, dst, data)
    if trace.values:
        values = single(data).reshape(data.form.partitions, -1)
        columns = []
        for half in (values[:, 0::2], values[:, 1::2]):
            count = half.shape[1]
            mean = half.mean(axis=1) if count else np.zeros(len(half), np.float32)
            spread = half.var(axis=1) * count if count else np.zeros(len(half), np.float32)
            columns += [np.full(len(half), count, np.float32), mean, spread]
        write(dst, np.stack(columns, axis=1))


def bn_aggr(dst: NkiTensor, data: NkiTensor, name: str | None = None) -> None:
    """Mean and variance of each partition from triples of `bn_stats`.

    Args:
        dst: (P, 2) tile: mean, variance.
        data: (P, 3 n) tile: count, mean, variance x count.
        name: Kept for the profile.

    Raises:
        NkiValidationError: The elements are not triples.
    """
    trace = ready()
    forms = form_of(dst), form_of(data)
    key = (bn_aggr, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_on_chip("bn_aggr", dst=dst.form, data=data.form)
        if data.form.elements % 3 or dst.form.elements != 2:
            raise refuse(
                f"bn_aggr takes triples and gives 2 elements per partition, got shapes {data.shape} and "
                f"{dst.shape}"
            )
        step = compute_step(Engine.VECTOR, Opcode.BN_AGGREGATE, dst.form, data.form)
        kind = trace.add_kind(key, Kind("bn_aggr", (step,)))
    issue(trace, kind, dst, data)
    if trace.values:
        triples = single(data).reshape(data.form.partitions, -1, 3)
        count, mean, spread = triples[:, :, 0], triples[:, :, 1], triples[:, :, 2]
        total = count.sum(axis=1)
        overall = (count * mean).sum(axis=1) / total
        variance = (spread + count * (mean - overall[:, None]) ** 2).sum(axis=1) / total
        write(dst, np.stack([overall, variance], axis=1))


def max8(dst: NkiTensor, src: NkiTensor, name: str | None = None) -> None:
    """The 8 largest values of each partition, in descending order.

    Args:
        dst: (P, 8) tile.
        src: (P, ...) tile of 8 to 16384 elements per partition.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    kind = _search_kind(trace, max8, "max8", Opcode.MAX8, dst, src)
    issue(trace, kind, dst, src)
    if trace.values:
        values = single(src).reshape(src.form.partitions, -1)
        write(dst, -np.sort(-values, axis=1, kind="stable")[:, :_WIDTH])


def _search_kind(trace: Tracer, call: Any, name: str, opcode: Opcode, dst: NkiTensor, src: NkiTensor) -> Kind:
    forms = form_of(dst), form_of(src)
    key = (call, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_on_chip(name, dst=dst.form, src=src.form)
        if not _WIDTH <= src.form.elements <= _LARGEST_SEARCH:
            raise refuse(
                f"{name} takes {_WIDTH} to {_LARGEST_SEARCH} elements per partition, got {src.form.elements}"
            )
        step = compute_step(Engine.VECTOR, opcode, dst.form, src.form, elements=src.form.elements)
        kind = trace.add_kind(key, Kind(name, (step,)))
    return kind


def nc_find_index8(dst: NkiTensor, data: NkiTensor, vals: NkiTensor, name: str | None = None) -> None:
    """Index of the first occurrence in `data` of each of 8 values per partition.

    Equal values among the 8 find successive occurrences.

    Args:
        dst: (P, 8) tile, uint16 or uint32.
        data: (P, ...) tile of 8 to 16384 elements per partition.
        vals: (P, 8) tile.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    kind = _search_kind(trace, nc_find_index8, "nc_find_index8", Opcode.FIND_INDEX8, dst, data)
    form_of(vals)
    issue(trace, kind, dst, data, vals)
    if trace.values:
        found = _first_matches(single(data).reshape(data.form.partitions, -1),
                               single(vals).reshape(data.form.partitions, -1))  # fmt: skip
        write(dst, found.astype(np.int64))


def _first_matches(values: Array, wanted: Array) -> Array:
    """Column of each wanted value, -1 where there is none; repeated values take successive columns."""
    found = np.full(wanted.shape, -1, np.int64)
    taken = np.zeros(values.shape, bool)
    rows = np.arange(len(values))
    for column_index in range(wanted.shape[1]):
        equal = (values == wanted[:, column_index : column_index + 1]) & ~taken
        first = equal.argmax(axis=1)
        hit = equal[rows, first]
        found[hit, column_index] = first[hit]
        taken[rows[hit], first[hit]] = True
    return found


def nc_match_replace8(
    dst: NkiTensor,
    data: NkiTensor,
    vals: NkiTensor,
    imm: float,
    dst_idx: NkiTensor | None = None,
    name: str | None = None,
) -> None:
    """Copy `data` with the first occurrence of each of 8 values per partition replaced by `imm`.

    Args:
        dst: (P, ...) tile.
        data: Tile of as many elements, 8 to 16384 per partition.
        vals: (P, 8) tile.
        imm: The replacement.
        dst_idx: (P, 8) tile for the indices of the matches.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    kind = _search_kind(trace, nc_match_replace8, "nc_match_replace8", Opcode.MATCH_REPLACE8, dst, data)
    form_of(vals)
    form_of(dst_idx)
    issue(trace, kind, dst, data, vals, second=dst_idx)
    if trace.values:
        values = single(data).reshape(data.form.partitions, -1).copy()
        found = _first_matches(values, single(vals).reshape(data.form.partitions, -1))
        rows, columns = np.nonzero(found >= 0)
        values[rows, found[rows, columns]] = imm
        write(dst, values)
        if dst_idx is not None:
            write(dst_idx, found)


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
