# NumPy arithmetic on arrays of any type is typed as Any:
# mypy: disable-error-code="no-any-return"
"""Instructions of the GpSimd engine: patterns, selections and gathers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from neuron_tools.backend.kinds import Kind
from neuron_tools.nki.isa.instruction import NkiInstruction
from neuron_tools.nki.isa.issue import (
    compute_step,
    form_of,
    issue,
    ready,
    refuse,
    require_memory,
    require_on_chip,
    require_same_size,
)
from neuron_tools.nki.operators import find_operator
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import Array, cast, exact, single, write
from neuron_tools.nki.view_form import ViewForm
from neuron_tools.records.program import Engine, Memory, Opcode

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


def _check_pattern(name: str, pattern: Pattern, form: ViewForm) -> None:
    count = 1
    for _, extent in pattern:
        count *= int(extent)
    if count != form.elements:
        raise refuse(
            f"{name}: pattern {[list(p) for p in pattern]} has {count} elements, but dst of shape "
            f"{form.shape} has {form.elements} per partition"
        )


def iota(
    dst: NkiTensor,
    pattern: Pattern,
    offset: int = 0,
    channel_multiplier: int = 0,
    name: str | None = None,
) -> NkiInstruction:
    """Fill a tile with offset + partition * channel_multiplier + an affine pattern of the position.

    Args:
        dst: (P, ...) tile in SBUF, any type.
        pattern: [step, count] of up to four dimensions; the counts multiply to the elements per partition.
        offset: int32.
        channel_multiplier: int32.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    form = form_of(dst)
    assert form is not None
    _check_pattern("iota", pattern, form)
    key = (iota, form)
    kind = trace.kinds.get(key)
    if kind is None:
        require_memory("iota", Memory.SBUF, dst=form)
        kind = trace.add_kind(key, Kind("iota", (compute_step(Engine.GPSIMD, Opcode.IOTA, form),)))
    issue(trace, kind, dst)
    if trace.values:
        write(dst, affine_values(pattern, form.partitions, offset, channel_multiplier))
    return NkiInstruction(trace)


def affine_select(
    dst: NkiTensor,
    pattern: Pattern,
    channel_multiplier: int = 0,
    on_true_tile: Any = None,
    on_false_value: float = 0.0,
    cmp_op: Any = "equal",
    offset: int = 0,
    name: str | None = None,
) -> NkiInstruction:
    """Keep elements where an affine value of the position compares true with 0; fill the others.

    Args:
        dst: (P, ...) tile in SBUF.
        pattern: As for `iota`.
        channel_multiplier: As for `iota`.
        on_true_tile: Tile of as many elements in SBUF.
        on_false_value: The filling, fp32.
        cmp_op: Comparison of the affine value with 0.
        offset: As for `iota`.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    if on_true_tile is None:  # the 0.1 spelling had the offset before the multiplier
        raise refuse("affine_select needs on_true_tile")
    trace = ready()
    form, source = form_of(dst), form_of(on_true_tile)
    assert form is not None
    _check_pattern("affine_select", pattern, form)
    key = (affine_select, cmp_op, form, source)
    kind = trace.kinds.get(key)
    if kind is None:
        if not trace.older_dialect:
            require_memory("affine_select", Memory.SBUF, dst=form, on_true_tile=source)
        if source is not None:
            require_same_size("affine_select", form, source, "dst and on_true_tile")
        step = compute_step(Engine.GPSIMD, Opcode.AFFINE_SELECT, form, source)
        kind = trace.add_kind(key, Kind("affine_select", (step,)))
    issue(trace, kind, dst, on_true_tile)
    if trace.values:
        affine = affine_values(pattern, form.partitions, offset, channel_multiplier)
        chosen = find_operator(cmp_op).function(affine, 0) != 0
        values = single(on_true_tile).reshape(form.partitions, -1)
        write(dst, np.where(chosen, values, np.float32(on_false_value)))
    return NkiInstruction(trace)


def local_gather(
    dst: NkiTensor,
    src_buffer: NkiTensor,
    index: NkiTensor,
    num_elem_per_idx: int = 1,
    num_valid_indices: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """Gather along the free dimension, each group of 16 partitions by its own indices.

    Args:
        dst: (P, indices * num_elem_per_idx) tile, type of `src_buffer`.
        src_buffer: (P, F) tile in SBUF, P a multiple of 16.
        index: (P, n) uint16 tile; the 16 partitions of a group hold its indices, partition first.
        num_elem_per_idx: Elements taken from each index on: 1, 2, 4, 8, 16 or 32.
        num_valid_indices: Indices used of each group.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    forms = form_of(dst), form_of(src_buffer), form_of(index)
    key = (local_gather, num_elem_per_idx, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_memory("local_gather", Memory.SBUF, dst=forms[0], src_buffer=forms[1], index=forms[2])
        if src_buffer.form.partitions != index.form.partitions or index.form.partitions % CORES_PARTITIONS:
            raise refuse(
                f"local_gather needs the same multiple of {CORES_PARTITIONS} partitions in src_buffer and "
                f"index, got shapes {src_buffer.shape} and {index.shape}"
            )
        if num_elem_per_idx not in (1, 2, 4, 8, 16, 32):
            raise refuse(
                f"local_gather takes 1, 2, 4, 8, 16 or 32 elements per index, got {num_elem_per_idx}"
            )
        step = compute_step(Engine.GPSIMD, Opcode.LOCAL_GATHER, dst.form, src_buffer.form, index.form,
                            elements=dst.form.elements)  # fmt: skip
        kind = trace.add_kind(key, Kind("local_gather", (step,)))
    issue(trace, kind, dst, src_buffer, index)
    if trace.values:
        write(dst, _gathered_by_core(dst, src_buffer, index, num_elem_per_idx, num_valid_indices))
    return NkiInstruction(trace)


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


def nc_n_gather(
    dst: NkiTensor, data: NkiTensor, indices: NkiTensor, name: str | None = None
) -> NkiInstruction:
    """dst[p, i] = data[p, indices[p, i]]: each partition gathers from itself.

    Args:
        dst: (P, n) tile in SBUF, type of `data`.
        data: (P, ...) tile in SBUF.
        indices: (P, n) uint32 tile in SBUF.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    forms = form_of(dst), form_of(data), form_of(indices)
    key = (nc_n_gather, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_memory("nc_n_gather", Memory.SBUF, dst=forms[0], data=forms[1], indices=forms[2])
        require_same_size("nc_n_gather", dst.form, indices.form, "dst and indices")
        step = compute_step(Engine.GPSIMD, Opcode.LOCAL_GATHER, dst.form, data.form, indices.form,
                            elements=dst.form.elements)  # fmt: skip
        kind = trace.add_kind(key, Kind("nc_n_gather", (step,)))
    issue(trace, kind, dst, data, indices)
    if trace.values:
        values = exact(data).reshape(data.form.partitions, -1)
        where_from = exact(indices).reshape(indices.form.partitions, -1).astype(np.int64)
        if where_from.size and int(where_from.max()) >= values.shape[1]:
            raise refuse(
                f"nc_n_gather: index {int(where_from.max())} is outside {values.shape[1]} elements per "
                "partition"
            )
        write(dst, np.take_along_axis(values, where_from, axis=1))
    return NkiInstruction(trace)


def nonzero_with_count(
    dst: NkiTensor,
    src: NkiTensor,
    index_offset: int = 0,
    padding_val: int = -1,
    name: str | None = None,
) -> NkiInstruction:
    """Positions of the nonzero elements of partitions 0, 16, ... 112, padded, then their count.

    Args:
        dst: (P, T + 1) int32 tile in SBUF; other partitions stay.
        src: (P, T) fp32 or int32 tile in SBUF.
        index_offset: Added to every position.
        padding_val: Fills the places after the last position.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    forms = form_of(dst), form_of(src)
    key = (nonzero_with_count, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_memory("nonzero_with_count", Memory.SBUF, dst=forms[0], src=forms[1])
        if dst.form.elements != src.form.elements + 1:
            raise refuse(
                f"nonzero_with_count needs one element more in dst than in src, got shapes {dst.shape} and "
                f"{src.shape}"
            )
        step = compute_step(Engine.GPSIMD, Opcode.CUSTOM_OP, dst.form, src.form)
        kind = trace.add_kind(key, Kind("nonzero_with_count", (step,)))
    issue(trace, kind, dst, src)
    if trace.values:
        values = exact(src).reshape(src.form.partitions, -1)
        result = exact(dst).reshape(dst.form.partitions, -1).copy()
        for partition in range(0, len(values), CORES_PARTITIONS):
            positions = np.flatnonzero(values[partition])
            result[partition, :-1] = padding_val
            result[partition, : len(positions)] = positions + index_offset
            result[partition, -1] = len(positions)
        write(dst, result)
    return NkiInstruction(trace)


def tensor_partition_reduce(
    dst: NkiTensor, op: Any, data: NkiTensor, name: str | None = None
) -> NkiInstruction:
    """dst = reduction of `data` over its partitions.

    Args:
        dst: (1, ...) tile.
        op: add, maximum, bitwise_or or bitwise_and.
        data: (P, ...) tile.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    forms = form_of(dst), form_of(data)
    key = (tensor_partition_reduce, op, *forms)
    kind = trace.kinds.get(key)
    operator = find_operator(op)
    if kind is None:
        require_on_chip("tensor_partition_reduce", dst=forms[0], data=forms[1])
        if operator.reduce is None or dst.form.elements != data.form.elements:
            raise refuse(
                f"tensor_partition_reduce with {operator.name} of shape {data.shape} cannot give {dst.shape}"
            )
        step = compute_step(Engine.GPSIMD, Opcode.PARTITION_REDUCE, dst.form, data.form)
        kind = trace.add_kind(key, Kind("tensor_partition_reduce", (step,)))
    issue(trace, kind, dst, data)
    if trace.values:
        assert operator.reduce is not None
        values = exact(data) if operator.bitwise else single(data)
        write(dst, operator.reduce(values, axis=0))
    return NkiInstruction(trace)


def sequence_bounds(dst: NkiTensor, segment_ids: NkiTensor, name: str | None = None) -> NkiInstruction:
    """First and last position (exclusive) of the segment of each element; padding (id 0) gets n and -1.

    Args:
        dst: (1, 2, n) fp32 or int32 tile.
        segment_ids: (1, n) fp32 or int32 tile.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    forms = form_of(dst), form_of(segment_ids)
    key = (sequence_bounds, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_on_chip("sequence_bounds", dst=forms[0], segment_ids=forms[1])
        if segment_ids.form.partitions != 1 or dst.form.size != 2 * segment_ids.form.size:
            raise refuse(
                f"sequence_bounds takes (1, n) and gives (1, 2, n), got {segment_ids.shape} and {dst.shape}"
            )
        step = compute_step(Engine.GPSIMD, Opcode.CUSTOM_OP, dst.form, segment_ids.form)
        kind = trace.add_kind(key, Kind("sequence_bounds", (step,)))
    issue(trace, kind, dst, segment_ids)
    if trace.values:
        write(dst, bounds_of_segments(single(segment_ids).reshape(-1)))
    return NkiInstruction(trace)


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


def topk(
    val_dst: NkiTensor, idx_dst: NkiTensor, src: NkiTensor, n: int, name: str | None = None
) -> NkiInstruction:
    """The largest values of each group of 16 partitions and their positions.

    Elements are numbered along the 16 partitions first, then along the free dimension.

    Args:
        val_dst: (P, k / 16) tile for the values, descending.
        idx_dst: (P, k / 16) uint32 tile for the positions.
        src: (P, F) bf16 tile.
        n: Elements of each group that count.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    forms = form_of(val_dst), form_of(idx_dst), form_of(src)
    key = (topk, n, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_memory("topk", Memory.SBUF, val_dst=forms[0], idx_dst=forms[1], src=forms[2])
        step = compute_step(Engine.GPSIMD, Opcode.CUSTOM_OP, val_dst.form, src.form, elements=4 * n)
        kind = trace.add_kind(key, Kind("topk", (step,)))
    issue(trace, kind, val_dst, src, second=idx_dst)
    if trace.values:
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
    return NkiInstruction(trace)
