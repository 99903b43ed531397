"""Pooling backward and adaptive pooling, without gathers or scatters where windows allow it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import torch
from torch import fx

from neuron_tools.compiler.opcodes import MAX_POOL_GRADIENT, POOLING_SIZES
from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes, decomposes_refused
from neuron_tools.frontends.torch_lowering.intrinsics import Intrinsic, becomes

_aten = torch.ops.aten


_MOST_OFFSETS = 25  # more windows over an element than this, and a scatter is cheaper than one pass for each


def _each(values: Any, rank: int, default: Any = None) -> list[int]:
    """One value per spatial dimension, where one may stand for all and none for the default."""
    each: list[int] = list(values) or list(default)
    return each * rank if len(each) == 1 else each


def _pooling_gradient(node: fx.Node) -> Intrinsic | None:
    """One operation, where windows are small."""
    kernel_size, stride, padding, dilation = node.args[2:6]
    rank = 3 if node.target is _aten.max_pool3d_with_indices_backward.default else 2
    kernel, padding, dilation = (_each(values, rank) for values in (kernel_size, padding, dilation))
    if math.prod(kernel) > _MOST_OFFSETS:
        return None
    sizes = (kernel, _each(stride, rank, kernel), padding, dilation)
    return Intrinsic(MAX_POOL_GRADIENT, dict(zip(POOLING_SIZES, map(tuple, sizes))))


for _rank in (2, 3):
    becomes(f"aten::max_pool{_rank}d_with_indices_backward", _pooling_gradient)


@decomposes_refused(_aten.max_pool2d_with_indices_backward.default)
def _max_pool_backward(
    gradient: Any, data: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    indices: Any, rank: int = 2,
) -> Any:  # fmt: skip
    """Each element takes the gradients of the few windows over it whose maximum it was."""
    kernel, padding, dilation = (_each(values, rank) for values in (kernel_size, padding, dilation))
    stride = _each(stride, rank, kernel)
    windows = [
        range(-(((size - 1) * gap - pad) // step), (step - 1 + pad) // step + 1)
        for size, gap, pad, step in zip(kernel, dilation, padding, stride)
    ]
    if math.prod(map(len, windows)) > _MOST_OFFSETS:
        return _scatter_gradient(gradient, data, indices, rank)
    extents = list(data.shape[-rank:])
    grid = [
        max(len(window), -(-extent // step), count)
        for window, extent, step, count in zip(windows, extents, stride, gradient.shape[-rank:])
    ]
    here, nothing = _positions(extents, grid, stride), torch.zeros((), dtype=gradient.dtype)
    gradients, places = (_framed(*item, windows, grid) for item in ((gradient, 0), (indices, -1)))
    total = None
    for offsets in product(*windows):
        start = _flat([offset - window[0] for offset, window in zip(offsets, windows)], grid)
        part, chosen = (_over_windows(item, start, grid) for item in (gradients, places))
        part = torch.where(chosen == here, part, nothing)
        total = part if total is None else total + part
    return _trimmed(total, extents)


def _over_windows(planes: Any, start: int, grid: list[int]) -> Any:
    """A grid of windows from one place on, with a dimension for the step after each of its own."""
    count = math.prod(grid)
    if count != planes.shape[-1]:
        planes = _aten.slice(planes, -1, start, start + count)
    return planes.reshape([*planes.shape[:-1], *(size for extent in grid for size in (extent, 1))])


@decomposes_refused(_aten.max_pool3d_with_indices_backward.default)
def _max_pool3d_backward(
    gradient: Any, data: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    indices: Any,
) -> Any:  # fmt: skip
    return _max_pool_backward(
        gradient, data, kernel_size, stride, padding, dilation, ceil_mode, indices, rank=3
    )


def _positions(extents: list[int], grid: list[int], stride: list[int]) -> Any:
    """Number in its plane of each element, of shape (extent of the grid, step) for each dimension."""
    rank, inner, result = len(extents), 1, None
    for dim in reversed(range(rank)):
        shape = [1] * (2 * rank)
        shape[2 * dim : 2 * dim + 2] = grid[dim], stride[dim]
        along = (torch.arange(grid[dim] * stride[dim]) * inner).reshape(shape)
        result = along if result is None else result + along
        inner *= extents[dim]
    return result


def _framed(tensor: Any, fill: int, windows: list[range], grid: list[int]) -> Any:
    """Planes of windows, one row after the other, with `fill` where elements look beyond their ends.

    A window that a shifted row takes from the row before or after it is one that no element of the row lies
    in, so that the place of its maximum tells it apart.
    """
    rank, border = len(grid), []
    for dim in reversed(range(rank)):
        border += [0, grid[dim] - tensor.shape[dim - rank]]
    tensor = _aten.constant_pad_nd(tensor, border, fill) if any(border) else tensor
    low, high = (_flat([window[end] for window in windows], grid) for end in (0, -1))
    tensor = tensor.flatten(-rank)
    return _aten.constant_pad_nd(tensor, [-low, high], fill) if low or high else tensor


def _flat(offsets: Sequence[int], grid: Sequence[int]) -> int:
    """Places from one window of a grid to another, as they follow one another."""
    place = 0
    for offset, extent in zip(offsets, grid):
        place = place * extent + offset
    return place


def _trimmed(tensor: Any, extents: list[int]) -> Any:
    """Counts and steps as one dimension each, of so many elements."""
    rank = len(extents)
    outer = tensor.shape[: tensor.dim() - 2 * rank]
    sizes = [
        tensor.shape[len(outer) + 2 * dim] * tensor.shape[len(outer) + 2 * dim + 1] for dim in range(rank)
    ]
    tensor = tensor.reshape([*outer, *sizes])
    for dim, (size, extent) in enumerate(zip(sizes, extents)):
        if size != extent:
            tensor = _aten.slice(tensor, dim - rank, 0, extent)
    return tensor


@decomposes(_aten.adaptive_max_pool3d_backward.default)
def _adaptive_max_pool3d_backward(gradient: Any, data: Any, indices: Any) -> Any:
    return _scatter_gradient(gradient, data, indices, 3)


@decomposes(_aten.fractional_max_pool2d_backward.default)
def _fractional_max_pool2d_backward(
    gradient: Any, data: Any, kernel_size: Any, output_size: Any, indices: Any
) -> Any:
    return _scatter_gradient(gradient, data, indices)


@decomposes(_aten.fractional_max_pool3d_backward.default)
def _fractional_max_pool3d_backward(
    gradient: Any, data: Any, kernel_size: Any, output_size: Any, indices: Any
) -> Any:
    return _scatter_gradient(gradient, data, indices, 3)


@decomposes(_aten.adaptive_max_pool2d_backward.default)
def _adaptive_max_pool_backward(gradient: Any, data: Any, indices: Any) -> Any:
    return _scatter_gradient(gradient, data, indices)


def _scatter_gradient(gradient: Any, data: Any, indices: Any, rank: int = 2) -> Any:
    outer = data.shape[:-rank]
    plane = torch.zeros([*outer, data[(0,) * len(outer)].numel()], dtype=gradient.dtype)
    flat = plane.scatter_add(-1, indices.flatten(-rank), gradient.flatten(-rank))
    return flat.reshape(data.shape)


@decomposes(_aten.avg_pool2d_backward.default, _aten.avg_pool3d_backward.default)
def _average_pool_backward(
    gradient: Any, data: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None,
) -> Any:  # fmt: skip
    """Pooling is one small matrix per dimension; backward applies their transposes."""
    rank = 2 if len(kernel_size) == 1 else len(kernel_size)
    kernel, padding = _each(kernel_size, rank), _each(padding, rank)
    stride = _each(stride, rank, kernel)
    result = gradient
    for position, dim in enumerate(range(-rank, 0)):
        matrix = _window_matrix(
            data.shape[dim], gradient.shape[dim], kernel[position], stride[position], padding[position],
            count_include_pad, divisor_override is not None,
        ).to(gradient.dtype)  # fmt: skip
        result = apply_along(result, matrix.transpose(0, 1), dim)
    return result if divisor_override is None else result / divisor_override


@decomposes_refused(_aten.avg_pool2d.default, _aten.avg_pool3d.default)
def _average_pool(
    data: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    """One small matrix per dimension, for windows that torch-mlir does not lower."""
    sizes = _pooled_sizes(data, kernel_size, stride, padding, ceil_mode)
    rank = len(sizes)
    kernel, padding = _each(kernel_size, rank), _each(padding or [0], rank)
    stride = _each(stride, rank, kernel)
    result = data
    for position, dim in enumerate(range(-rank, 0)):
        matrix = _window_matrix(
            data.shape[dim], sizes[position], kernel[position], stride[position], padding[position],
            count_include_pad, divisor_override is not None,
        ).to(data.dtype)  # fmt: skip
        result = apply_along(result, matrix, dim)
    return result if divisor_override is None else result / divisor_override


def _pooled_sizes(data: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool) -> list[int]:
    """Spatial sizes of a pooling's result, as ATen computes them."""
    rank = len(kernel_size) if len(kernel_size) > 1 else max(data.dim() - 2, 1)
    kernel, padding = _each(kernel_size, rank), _each(padding or [0], rank)
    stride = _each(stride, rank, kernel)
    sizes = []
    for extent, window, step, pad in zip(data.shape[-rank:], kernel, stride, padding):
        room = extent + 2 * pad - window
        count = (-(-room // step) if ceil_mode else room // step) + 1
        if ceil_mode and (count - 1) * step >= extent + pad:
            count -= 1
        sizes.append(count)
    return sizes


def _window_matrix(
    extent: int, outputs: int, kernel: int, stride: int, padding: int, include_padding: bool, plain_sum: bool
) -> Any:
    """[outputs, extent]: the weight of each element in each output's mean."""
    begin = (torch.arange(outputs) * stride - padding).unsqueeze(1)
    end = torch.clamp(begin + kernel, max=extent + padding)
    element = torch.arange(extent)
    inside = ((element >= begin) & (element < end)).to(torch.float32)
    if plain_sum:
        return inside
    length = end - begin if include_padding else torch.clamp(end, max=extent) - torch.clamp(begin, min=0)
    return inside / length


def apply_along(tensor: Any, matrix: Any, dim: int) -> Any:
    """`matrix` [rows, n] applied along dimension `dim` (length n) of `tensor`."""
    if dim in (-1, tensor.dim() - 1):
        return torch.matmul(tensor, matrix.transpose(0, 1))
    return torch.matmul(matrix, tensor) if dim in (-2, tensor.dim() - 2) else torch.movedim(
        torch.matmul(torch.movedim(tensor, dim, -1), matrix.transpose(0, 1)), -1, dim
    )  # fmt: skip


def _adaptive_matrix(extent: int, outputs: int) -> Any:
    """[outputs, extent]: output i is the mean of elements floor(i n / m) to ceil((i + 1) n / m)."""
    index = torch.arange(outputs)
    begin = torch.div(index * extent, outputs, rounding_mode="floor").unsqueeze(1)
    end = torch.div((index + 1) * extent + outputs - 1, outputs, rounding_mode="floor").unsqueeze(1)
    element = torch.arange(extent)
    inside = ((element >= begin) & (element < end)).to(torch.float32)
    return inside / (end - begin)


@decomposes(_aten._adaptive_avg_pool2d.default)
def _adaptive_average(data: Any, output_size: Any) -> Any:
    height, width = data.shape[-2:]
    rows, columns = output_size
    if (rows, columns) == (1, 1):
        return data.mean([-2, -1], keepdim=True)
    if height % rows == 0 and width % columns == 0:
        blocks = data.reshape(*data.shape[:-2], rows, height // rows, columns, width // columns)
        return blocks.mean([-3, -1])
    result = apply_along(data, _adaptive_matrix(height, rows).to(data.dtype), -2)
    return apply_along(result, _adaptive_matrix(width, columns).to(data.dtype), -1)


@decomposes(_aten._adaptive_avg_pool2d_backward.default)
def _adaptive_average_backward(gradient: Any, data: Any) -> Any:
    height, width = data.shape[-2:]
    rows, columns = gradient.shape[-2:]
    if height % rows == 0 and width % columns == 0:
        share = gradient / ((height // rows) * (width // columns))
        spread = share.unsqueeze(-2).unsqueeze(-1)
        sizes = [*data.shape[:-2], rows, height // rows, columns, width // columns]
        return (
            spread.movedim(-2, -3)
            .reshape(*data.shape[:-2], rows, 1, columns, 1)
            .expand(sizes)
            .reshape(data.shape)
        )
    result = apply_along(gradient, _adaptive_matrix(height, rows).to(gradient.dtype).transpose(0, 1), -2)
    return apply_along(result, _adaptive_matrix(width, columns).to(gradient.dtype).transpose(0, 1), -1)


@decomposes(_aten._adaptive_avg_pool3d.default)
def _adaptive_average3d(data: Any, output_size: Any) -> Any:
    for dim, outputs in zip((-3, -2, -1), output_size):
        data = apply_along(data, _adaptive_matrix(data.shape[dim], outputs).to(data.dtype), dim)
    return data


@decomposes(_aten._adaptive_avg_pool3d_backward.default)
def _adaptive_average3d_backward(gradient: Any, data: Any) -> Any:
    for dim in (-3, -2, -1):
        matrix = _adaptive_matrix(data.shape[dim], gradient.shape[dim]).to(gradient.dtype)
        gradient = apply_along(gradient, matrix.transpose(0, 1), dim)
    return gradient


@decomposes(_aten.adaptive_max_pool2d.default)
def _adaptive_maximum(data: Any, output_size: Any) -> Any:
    """Even windows are ordinary pooling; uneven ones take the overlapping windows of their largest size."""
    height, width = data.shape[-2:]
    rows, columns = output_size
    stride = [max(height // rows, 1), max(width // columns, 1)]
    kernel = [height - (rows - 1) * stride[0], width - (columns - 1) * stride[1]]
    return _aten.max_pool2d_with_indices(data, kernel, stride)
