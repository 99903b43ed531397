# NumPy arithmetic on arrays of any type is typed as Any:
# mypy: disable-error-code="no-any-return"
"""Instructions of the GpSimd engine: patterns, selections and gathers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from neuron_tools.arrays import Array
from neuron_tools.backend.kinds import Kind
from neuron_tools.nki.isa.issue import (
    refuse,
    require_comparisons,
    require_types,
)
from neuron_tools.nki.isa.prologue import instruction
from neuron_tools.nki.isa.table import SBUF, Call, Derived, Instruction, Operand
from neuron_tools.nki.operators import find_operator
from neuron_tools.nki.selected import selected
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import cast, exact, single, write
from neuron_tools.nki.view_form import ViewForm
from neuron_tools.records.program import Engine, Opcode

Pattern = Sequence[Sequence[int]]
CORES_PARTITIONS = 16
"""Partitions that one of the eight cores serves."""


def affine_values(pattern: Pattern, partitions: int, offset: int, channel_multiplier: int) -> Array:
    """offset + partition * channel_multiplier + sum(step * position); int64 of shape (P, elements)."""
    row = np.zeros((1,), np.int64)
    for step, count in pattern:
        row = (row[:, None] + np.arange(int(count), dtype=np.int64) * int(step)).reshape(-1)
    first = int(offset) + np.arange(partitions, dtype=np.int64) * int(channel_multiplier)
    return np.asarray(first[:, None] + row[None, :])


def _steps(pattern: Pattern) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(int, step)) for step in pattern)


_PATTERN = (Derived("pattern", ("pattern",), _steps),)
_PATTERN_DIMENSIONS = 4


def _check_pattern(call: Call) -> None:
    """Refuse patterns of more than four dimensions, or of another size than the result's."""
    form, pattern = call.form("dst"), call.given["pattern"]
    if len(pattern) > _PATTERN_DIMENSIONS:
        raise refuse(
            f"{call.record.name} takes a pattern of up to {_PATTERN_DIMENSIONS} dimensions, got "
            f"{len(pattern)}; join some"
        )
    count = math.prod(extent for _, extent in pattern)
    if count != form.elements:
        raise refuse(
            f"{call.record.name}: pattern {[list(p) for p in pattern]} has {count} elements, but dst of "
            f"shape {form.shape} has {form.elements} per partition"
        )
    if "on_true_tile" in call.forms and call.forms["on_true_tile"] is None:
        raise refuse(f"{call.record.name} needs on_true_tile")


def _as_written(call: Call) -> Kind:
    """The cost counts the elements of the result."""
    return call.kind(elements=call.form("dst").elements)


@instruction(Instruction(
    "iota", Opcode.IOTA, (Engine.GPSIMD,), (Operand("dst", SBUF, written=True),),
    key=("pattern",), derived=_PATTERN, rule=_check_pattern,
))  # fmt: skip
def iota(
    dst: NkiTensor,
    pattern: Pattern,
    offset: int = 0,
    channel_multiplier: int = 0,
    name: str | None = None,
) -> None:
    """Fill a tile with offset + partition * channel_multiplier + an affine pattern of the position.

    Args:
        dst: (P, ...) tile in SBUF, any type.
        pattern: [step, count] of up to four dimensions; the counts multiply to the elements per partition.
        offset: int32.
        channel_multiplier: int32.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    write(dst, affine_values(pattern, dst.form.partitions, offset, channel_multiplier))


def _check_selection(call: Call) -> None:
    _check_pattern(call)
    require_comparisons("affine_select", cmp_op=call.given["cmp_op"])


@instruction(Instruction(
    "affine_select", Opcode.AFFINE_SELECT, (Engine.GPSIMD,),
    (Operand("dst", SBUF, written=True), Operand("on_true_tile", SBUF, optional=True)),
    same_size=(("dst", "on_true_tile"),), key=("pattern", "cmp_op"), derived=_PATTERN, older_in_psum=True,
    rule=_check_selection,
))  # fmt: skip
def affine_select(
    dst: NkiTensor,
    pattern: Pattern,
    channel_multiplier: int = 0,
    on_true_tile: Any = None,
    on_false_value: float = 0.0,
    cmp_op: Any = "equal",
    offset: int = 0,
    name: str | None = None,
) -> None:
    """Keep elements where an affine value of the position compares true with 0; fill the others.

    Args:
        dst: (P, ...) tile in SBUF.
        pattern: As for `iota`.
        channel_multiplier: As for `iota`.
        on_true_tile: Tile of as many elements in SBUF.
        on_false_value: The filling, fp32.
        cmp_op: Comparison of the affine value with 0.
        offset: As for `iota`.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    affine = affine_values(pattern, dst.form.partitions, offset, channel_multiplier)
    chosen = find_operator(cmp_op).function(affine, 0) != 0
    values = single(on_true_tile).reshape(dst.form.partitions, -1)
    write(dst, selected(chosen, values, on_false_value))


def _check_valid(index: ViewForm, valid: int | None) -> None:
    """Refuse more valid indices than the partitions of a core hold."""
    held = index.elements * CORES_PARTITIONS
    if valid is not None and valid > held:
        raise refuse(
            f"local_gather has {held} indices for each {CORES_PARTITIONS} partitions, num_valid_indices is "
            f"{valid}; give at most {held}, or leave it out"
        )


def _check_gather(call: Call) -> None:
    source, index, width = call.form("src_buffer"), call.form("index"), call.given["num_elem_per_idx"]
    if source.partitions != index.partitions or index.partitions % CORES_PARTITIONS:
        raise refuse(
            f"local_gather needs the same multiple of {CORES_PARTITIONS} partitions in src_buffer and "
            f"index, got shapes {source.shape} and {index.shape}"
        )
    require_types("local_gather", ("uint16",), index=index)
    _check_valid(index, call.given["num_valid_indices"])
    if width not in (1, 2, 4, 8, 16, 32):
        raise refuse(f"local_gather takes 1, 2, 4, 8, 16 or 32 elements per index, got {width}")


@instruction(Instruction(
    "local_gather", Opcode.LOCAL_GATHER, (Engine.GPSIMD,),
    (Operand("dst", SBUF, written=True), Operand("src_buffer", SBUF), Operand("index", SBUF)),
    same_type=(("dst", "src_buffer"),), key=("num_elem_per_idx", "num_valid_indices"), rule=_check_gather,
    build=_as_written,
))  # fmt: skip
def local_gather(
    dst: NkiTensor,
    src_buffer: NkiTensor,
    index: NkiTensor,
    num_elem_per_idx: int = 1,
    num_valid_indices: int | None = None,
    name: str | None = None,
) -> None:
    """Gather along the free dimension, each group of 16 partitions by its own indices.

    Args:
        dst: (P, indices * num_elem_per_idx) tile, type of `src_buffer`.
        src_buffer: (P, F) tile in SBUF, P a multiple of 16.
        index: (P, n) uint16 tile; the 16 partitions of a group hold its indices, partition first.
        num_elem_per_idx: Elements taken from each index on: 1, 2, 4, 8, 16 or 32.
        num_valid_indices: Indices used of each group.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    write(dst, _gathered_by_core(dst, src_buffer, index, num_elem_per_idx, num_valid_indices))


def _gathered_by_core(
    dst: NkiTensor, source: NkiTensor, index: NkiTensor, width: int, valid: int | None
) -> Array:
    values = exact(source).reshape(source.form.partitions, -1)
    indices = exact(index).reshape(index.form.partitions, -1).astype(np.int64)
    result = exact(dst).reshape(dst.form.partitions, -1).copy()
    for first in range(0, len(values), CORES_PARTITIONS):
        group = slice(first, first + CORES_PARTITIONS)
        chosen = indices[group].T.reshape(-1)[:valid]
        positions = (chosen[:, None] + np.arange(width)).reshape(-1)
        taken = values[group][:, positions]
        result[group, : taken.shape[1]] = taken[:, : result.shape[1]]
    return result


def _check_indices(call: Call) -> None:
    indices = call.form("indices")
    if not indices.dtype.is_integer:
        raise refuse(f"nc_n_gather takes integer indices, got {indices.dtype}; use nl.uint32")


@instruction(Instruction(
    "nc_n_gather", Opcode.LOCAL_GATHER, (Engine.GPSIMD,),
    (Operand("dst", SBUF, written=True), Operand("data", SBUF), Operand("indices", SBUF, types=("uint32",))),
    same_size=(("dst", "indices"),), same_type=(("dst", "data"),), rule=_check_indices, build=_as_written,
))  # fmt: skip
def nc_n_gather(dst: NkiTensor, data: NkiTensor, indices: NkiTensor, name: str | None = None) -> None:
    """dst[p, i] = data[p, indices[p, i]]: each partition gathers from itself.

    Args:
        dst: (P, n) tile in SBUF, type of `data`.
        data: (P, ...) tile in SBUF.
        indices: (P, n) uint32 tile in SBUF.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    values = exact(data).reshape(data.form.partitions, -1)
    where_from = exact(indices).reshape(indices.form.partitions, -1).astype(np.int64)
    outside = where_from[(where_from < 0) | (where_from >= values.shape[1])]
    if outside.size:
        raise refuse(
            f"nc_n_gather: index {int(outside[0])} is outside {values.shape[1]} elements per partition"
        )
    write(dst, np.take_along_axis(values, where_from, axis=1))


def _check_count(call: Call) -> None:
    dst, src = call.form("dst"), call.form("src")
    if dst.elements != src.elements + 1:
        raise refuse(
            f"nonzero_with_count needs one element more in dst than in src, got shapes {dst.shape} and "
            f"{src.shape}"
        )


@instruction(Instruction(
    "nonzero_with_count", Opcode.CUSTOM_OP, (Engine.GPSIMD,),
    (Operand("dst", SBUF, written=True, types=("int32",)), Operand("src", SBUF, types=("float32", "int32"))),
    rule=_check_count,
))  # fmt: skip
def nonzero_with_count(
    dst: NkiTensor,
    src: NkiTensor,
    index_offset: int = 0,
    padding_val: int = -1,
    name: str | None = None,
) -> None:
    """Positions of the nonzero elements of partitions 0, 16, ... 112, padded, then their count.

    Args:
        dst: (P, T + 1) int32 tile in SBUF; other partitions stay.
        src: (P, T) fp32 or int32 tile in SBUF.
        index_offset: Added to every position.
        padding_val: Fills the places after the last position.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    values = exact(src).reshape(src.form.partitions, -1)
    result = exact(dst).reshape(dst.form.partitions, -1).copy()
    for partition in range(0, len(values), CORES_PARTITIONS):
        positions = np.flatnonzero(values[partition])
        result[partition, :-1] = padding_val
        result[partition, : len(positions)] = positions + index_offset
        result[partition, -1] = len(positions)
    write(dst, result)


def _check_operator(call: Call) -> None:
    dst, data, op = call.form("dst"), call.form("data"), find_operator(call.given["op"])
    if op.reduce is None or dst.elements != data.elements:
        raise refuse(f"tensor_partition_reduce with {op.name} of shape {data.shape} cannot give {dst.shape}")


@instruction(Instruction(
    "tensor_partition_reduce", Opcode.PARTITION_REDUCE, (Engine.GPSIMD,),
    (Operand("dst", written=True), Operand("data")), key=("op",), rule=_check_operator,
))  # fmt: skip
def tensor_partition_reduce(dst: NkiTensor, op: Any, data: NkiTensor, name: str | None = None) -> None:
    """dst = reduction of `data` over its partitions.

    Args:
        dst: (1, ...) tile.
        op: add, maximum, bitwise_or or bitwise_and.
        data: (P, ...) tile.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    operator = find_operator(op)
    assert operator.reduce is not None
    values = exact(data) if operator.bitwise else single(data)
    write(dst, operator.reduce(values, axis=0))


def _check_segments(call: Call) -> None:
    dst, ids = call.form("dst"), call.form("segment_ids")
    if ids.partitions != 1 or dst.size != 2 * ids.size:
        raise refuse(f"sequence_bounds takes (1, n) and gives (1, 2, n), got {ids.shape} and {dst.shape}")


@instruction(Instruction(
    "sequence_bounds", Opcode.CUSTOM_OP, (Engine.GPSIMD,),
    (Operand("dst", written=True, types=("float32", "int32")),
     Operand("segment_ids", types=("float32", "int32"))),
    rule=_check_segments,
))  # fmt: skip
def sequence_bounds(dst: NkiTensor, segment_ids: NkiTensor, name: str | None = None) -> None:
    """First and last position (exclusive) of the segment of each element; padding (id 0) gets n and -1.

    Args:
        dst: (1, 2, n) fp32 or int32 tile.
        segment_ids: (1, n) fp32 or int32 tile.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    write(dst, bounds_of_segments(single(segment_ids).reshape(-1)))


def bounds_of_segments(segments: Array) -> Array:
    """(2, n): start and end of the run of equal ids around each element."""
    count = len(segments)
    change = np.flatnonzero(np.diff(segments) != 0) + 1
    starts = np.concatenate([[0], change])
    ends = np.concatenate([change, [count]])
    run = np.repeat(np.arange(len(starts)), ends - starts)
    padding = segments == 0
    return np.stack(
        [np.where(padding, count, starts[run]), np.where(padding, -1, ends[run])]
    ).astype(np.float32)  # fmt: skip


@instruction(Instruction(
    "topk", Opcode.CUSTOM_OP, (Engine.GPSIMD,),
    (Operand("val_dst", SBUF, written=True), Operand("idx_dst", SBUF, written=True), Operand("src", SBUF)),
    key=("n",), build=lambda call: call.kind(elements=4 * call.given["n"]),
))  # fmt: skip
def topk(val_dst: NkiTensor, idx_dst: NkiTensor, src: NkiTensor, n: int, name: str | None = None) -> None:
    """The largest values of each group of 16 partitions and their positions.

    Elements are numbered along the 16 partitions first, then along the free dimension.

    Args:
        val_dst: (P, k / 16) tile for the values, descending.
        idx_dst: (P, k / 16) uint32 tile for the positions.
        src: (P, F) bf16 tile.
        n: Elements of each group that count.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    values = single(src).reshape(src.form.partitions, -1)
    best = np.zeros((val_dst.form.partitions, val_dst.form.elements), np.float32)
    places = np.zeros_like(best, np.int64)
    for first in range(0, len(values), CORES_PARTITIONS):
        group = slice(first, first + CORES_PARTITIONS)
        flat = values[group].T.reshape(-1)[:n]
        rows = len(best[group])
        order = np.argsort(-flat, kind="stable")[: rows * best.shape[1]]
        grid = np.zeros(rows * best.shape[1], np.int64)
        grid[: len(order)] = order
        places[group] = grid.reshape(best.shape[1], rows).T
        best[group] = flat[grid].reshape(best.shape[1], rows).T
    write(val_dst, cast(best, val_dst.dtype))
    write(idx_dst, places)
