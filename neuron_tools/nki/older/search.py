"""Largest values, gathers and shuffles, as results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_tools.nki import dtypes, isa
from neuron_tools.nki.language.results import result
from neuron_tools.nki.older.results import result_type, returned, tile_result, tile_written
from neuron_tools.nki.tensor import NkiTensor


def local_gather(
    src_buffer: NkiTensor,
    index: NkiTensor,
    num_elem_per_idx: int = 1,
    num_valid_indices: int | None = None,
    *,
    mask: Any = None,
) -> NkiTensor:
    """Gather along the free dimension, each group of 16 partitions by its own indices."""
    partitions = src_buffer.shape[0]
    count = num_valid_indices or 16 * (index.size // index.shape[0])
    shape = (partitions, count * num_elem_per_idx) if num_elem_per_idx == 1 else (
        partitions, count, num_elem_per_idx
    )  # fmt: skip
    return result(
        shape,
        src_buffer.dtype,
        lambda target: isa.local_gather(target, src_buffer, index, num_elem_per_idx, num_valid_indices),
    )


max8 = returned(isa.max8, "src", columns=8)
nc_find_index8 = returned(isa.nc_find_index8, "data", columns=8, dtype=dtypes.uint32)


def nc_match_replace8(
    *,
    data: NkiTensor,
    vals: NkiTensor,
    imm: float,
    dst_idx: NkiTensor | None = None,
    mask: Any = None,
    dtype: Any = None,
) -> NkiTensor:
    """data with the first occurrence of each of 8 values replaced."""
    return tile_result(
        data.shape,
        result_type(dtype, data.dtype),
        mask,
        lambda target, left: isa.nc_match_replace8(target, left.part(data), vals, imm, dst_idx),
    )


def nc_stream_shuffle(
    src: NkiTensor,
    dst: NkiTensor,
    shuffle_mask: Sequence[int],
    *,
    dtype: Any = None,
    mask: Any = None,
) -> None:
    """Movement between the partitions of each quadrant of 32."""
    tile_written(dst, mask, lambda part, left: isa.nc_stream_shuffle(part, left.part(src), shuffle_mask))
