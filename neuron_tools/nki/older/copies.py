"""Copies on chip and by DMA, as results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_tools.nki import isa
from neuron_tools.nki.isa.dma import transposed_order
from neuron_tools.nki.isa.enums import dge_mode as dge_modes, oob_mode as bounds
from neuron_tools.nki.language.results import result
from neuron_tools.nki.older.results import in_place, result_type, returned, tile_written
from neuron_tools.nki.tensor import NkiTensor

tensor_copy = returned(isa.tensor_copy, "src")
tensor_copy_dynamic_src = tensor_copy
tensor_copy_dynamic_dst = in_place(isa.tensor_copy)
"""Places that are known only when the kernel runs take no other instruction."""


def tensor_copy_predicated(
    *,
    src: Any,
    dst: NkiTensor,
    predicate: NkiTensor,
    reverse_pred: bool = False,
    mask: Any = None,
    dtype: Any = None,
) -> None:
    """dst = src where the predicate is not zero; it may be repeated over inner dimensions of dst."""
    chosen = _over(predicate, dst)
    tile_written(
        dst,
        mask,
        lambda part, left: isa.tensor_copy_predicated(part, left.part(src), left.part(chosen), reverse_pred),
    )


def _over(predicate: NkiTensor, dst: NkiTensor) -> NkiTensor:
    """A predicate as large as the tile that it decides on: repeated over inner dimensions, and those of one.

    One that does not fit is unchanged.
    """
    inner = (*predicate.shape, *(1,) * (dst.ndim - predicate.ndim))
    if predicate.size == dst.size or len(inner) != dst.ndim:
        return predicate
    if any(have not in (1, wanted) for have, wanted in zip(inner, dst.shape)):
        return predicate
    return predicate.reshape(inner).broadcast_to(dst.shape)


def dma_copy(
    *,
    dst: NkiTensor,
    src: NkiTensor,
    mask: Any = None,
    dst_rmw_op: Any = None,
    oob_mode: bounds = bounds.error,
    dge_mode: dge_modes = dge_modes.unknown,
) -> None:
    """dst = src between HBM and SBUF."""
    tile_written(
        dst,
        mask,
        lambda part, left: isa.dma_copy(
            part, left.part(src), oob_mode=oob_mode, dge_mode=dge_mode, dst_rmw_op=dst_rmw_op
        ),
    )


def dma_transpose(
    src: NkiTensor,
    *,
    axes: Sequence[int] | None = None,
    mask: Any = None,
    dtype: Any = None,
    dge_mode: dge_modes = dge_modes.unknown,
) -> NkiTensor:
    """src with its first and last dimensions swapped, by DMA."""
    order = transposed_order(axes, src)
    shape = tuple(src.shape[axis] for axis in order)
    return result(
        shape,
        result_type(dtype, src.dtype),
        lambda target: isa.dma_transpose(target, src, order, dge_mode=dge_mode),
    )
