"""Slices, splits, strided views and diagonals."""

from __future__ import annotations

import math
from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes

_aten = torch.ops.aten


@decomposes(_aten.split.Tensor)
def _split(tensor: Any, split_size: int, dim: int = 0) -> list[Any]:
    extent = tensor.shape[dim]
    starts = range(0, max(extent, 1), max(split_size, 1))
    return [_aten.slice(tensor, dim, start, min(start + split_size, extent)) for start in starts]


@decomposes(_aten.split_with_sizes.default)
def _split_with_sizes(tensor: Any, split_sizes: list[int], dim: int = 0) -> list[Any]:
    ends = [sum(split_sizes[: index + 1]) for index in range(len(split_sizes))]
    return [_aten.slice(tensor, dim, end - size, end) for size, end in zip(split_sizes, ends)]


@decomposes(_aten.unbind.int)
def _unbind(tensor: Any, dim: int = 0) -> list[Any]:
    return [_aten.select(tensor, dim, index) for index in range(tensor.shape[dim])]


@decomposes(_aten.unsafe_split.Tensor)
def _unsafe_split(tensor: Any, split_size: int, dim: int = 0) -> list[Any]:
    return _split(tensor, split_size, dim)


@decomposes(_aten.slice_backward.default)
def _slice_backward(gradient: Any, sizes: list[int], dim: int, start: int, end: int, step: int) -> Any:
    """Zeros around the gradient and, with a step, between its elements."""
    return _spread(gradient, dim, sizes[dim], _clamped(start, sizes[dim]), step)


@decomposes(_aten.slice_scatter.default)
def _slice_scatter(
    tensor: Any, source: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    """What stands before the slice, the new values, what stands after.

    torch-mlir's own lowering takes unbounded memory for an open end (2^63 - 1), which is what autograd
    writes.
    """
    extent = tensor.shape[dim]
    first = _clamped(start or 0, extent)
    last = _clamped(extent if end is None else end, extent)
    if step != 1:
        mask = _spread(torch.ones_like(source, dtype=torch.bool), dim, extent, first, step)
        return torch.where(mask, _spread(source, dim, extent, first, step), tensor)
    parts = [_aten.slice(tensor, dim, 0, first), source, _aten.slice(tensor, dim, max(last, first), extent)]
    return torch.cat([part for part in parts if part.shape[dim] > 0], dim)


@decomposes(_aten.select_backward.default)
def _select_backward(gradient: Any, sizes: list[int], dim: int, index: int) -> Any:
    return _spread(gradient.unsqueeze(dim), dim, sizes[dim], _clamped(index, sizes[dim]), 1)


@decomposes(_aten.select_scatter.default)
def _select_scatter(tensor: Any, source: Any, dim: int, index: int) -> Any:
    first = _clamped(index, tensor.shape[dim])
    return _slice_scatter(tensor, source.unsqueeze(dim), dim, first, first + 1)


def _clamped(index: int, extent: int) -> int:
    """An index as slices take it: from the end where negative, within the extent."""
    return min(max(index + extent if index < 0 else index, 0), extent)


def _spread(tensor: Any, dim: int, extent: int, first: int, step: int) -> Any:
    """A tensor of `extent` zeros along `dim` with `tensor`'s elements at first, first + step, ..."""
    dim = dim % tensor.dim()
    count = tensor.shape[dim]
    if step > 1 and count:
        tensor = _pad(tensor.unsqueeze(dim + 1), dim + 1, 0, step - 1).flatten(dim, dim + 1)
        tensor = _aten.slice(tensor, dim, 0, (count - 1) * step + 1)
    return _pad(tensor, dim, first, extent - first - tensor.shape[dim])


def _pad(tensor: Any, dim: int, low: int, high: int) -> Any:
    widths = [0, 0] * (tensor.dim() - dim - 1) + [low, high]
    if low == high == 0:
        return tensor
    if tensor.dtype == torch.bool:
        return _aten.constant_pad_nd(tensor.to(torch.int32), widths).to(torch.bool)
    return _aten.constant_pad_nd(tensor, widths)


@decomposes(_aten.as_strided.default, _aten.as_strided_copy.default)
def _as_strided(tensor: Any, size: list[int], stride: list[int], storage_offset: int | None = None) -> Any:
    """A gather from the flat tensor, unless it is the tensor itself."""
    flat = tensor.reshape(-1)
    offset = storage_offset or 0
    count = math.prod(size)
    if count <= flat.shape[0] - offset and list(stride) == _row_major(size):
        return _aten.slice(flat, 0, offset, offset + count).reshape(size)
    return flat[_positions(size, stride, offset).reshape(-1)].reshape(size)


@decomposes(_aten.as_strided_scatter.default)
def _as_strided_scatter(
    tensor: Any, source: Any, size: list[int], stride: list[int], storage_offset: int | None = None
) -> Any:
    """What stands before a dense view, its new values, what stands after; a scatter where it is not dense."""
    flat, values = tensor.reshape(-1), source.reshape(-1)
    offset = storage_offset or 0
    if list(stride) == _row_major(size):
        return _slice_scatter(flat, values, 0, offset, offset + math.prod(size)).reshape(tensor.shape)
    positions = _positions(size, stride, offset).reshape(-1)
    return flat.scatter(0, positions, values).reshape(tensor.shape)


def _positions(size: list[int], stride: list[int], offset: int) -> Any:
    """Flat positions of a strided view's elements, in the view's shape."""
    positions = torch.full(list(size), offset, dtype=torch.int64)
    for dim, (extent, step) in enumerate(zip(size, stride)):
        shape = [1] * len(size)
        shape[dim] = extent
        positions = positions + (torch.arange(extent) * step).reshape(shape)
    return positions


def _row_major(size: list[int]) -> list[int]:
    return [math.prod(size[dim + 1 :]) for dim in range(len(size))]


@decomposes(_aten.diagonal.default, _aten.diagonal_copy.default)
def _diagonal(tensor: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Masked by the diagonal and summed over one dimension: no gather."""
    matrix = tensor.movedim((dim1, dim2), (-2, -1))
    rows, columns = matrix.shape[-2], matrix.shape[-1]
    first_row, first_column = max(-offset, 0), max(offset, 0)
    length = max(min(rows - first_row, columns - first_column), 0)
    square = matrix[..., first_row : first_row + length, first_column : first_column + length]
    kept = torch.eye(length, dtype=torch.bool)
    return torch.where(kept, square, torch.zeros((), dtype=tensor.dtype)).sum(-1, dtype=tensor.dtype)


@decomposes(_aten.trace.default)
def _trace(matrix: Any) -> Any:
    return torch.diagonal(matrix).sum()


@decomposes(_aten.empty.memory_format)
def _empty(
    size: list[int], *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None,
    memory_format: Any = None,
) -> Any:  # fmt: skip
    """Undefined values: a number in every place costs nothing where it is overwritten."""
    number = _aten.scalar_tensor(0, dtype=dtype or torch.get_default_dtype())
    return _aten.expand(number, size)


@decomposes(_aten.empty_strided.default, _aten.new_empty_strided.default)
def _empty_strided(*args: Any, dtype: Any = None, **kwargs: Any) -> Any:
    if isinstance(args[0], torch.Tensor):
        return _aten.empty.memory_format(args[1], dtype=dtype or args[0].dtype)
    return _aten.empty.memory_format(args[0], dtype=dtype)


@decomposes(_aten.resize.default)
def _resize(tensor: Any, size: list[int], memory_format: Any = None) -> Any:
    """What fits is kept; the rest is undefined."""
    flat, count = tensor.reshape(-1), math.prod(size)
    if flat.shape[0] < count:
        flat = _pad(flat, 0, 0, count - flat.shape[0])
    return _aten.slice(flat, 0, 0, count).reshape(size)
