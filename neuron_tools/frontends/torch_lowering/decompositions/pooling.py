"""Pooling backward and adaptive pooling, without gathers or scatters where windows allow it."""

from __future__ import annotations

from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes, decomposes_refused

_aten = torch.ops.aten


_MOST_OFFSETS = 25  # more window positions than this, and a scatter is cheaper than one pass for each


def _pair(values: Any, default: Any = None) -> list[int]:
    return _each(values, 2, default)


def _each(values: Any, rank: int, default: Any = None) -> list[int]:
    """One value per spatial dimension, where one may stand for all and none for the default."""
    each: list[int] = list(values) or list(default)
    return each * rank if len(each) == 1 else each


def _place(tensor: Any, first: tuple[int, int], stride: list[int], canvas: tuple[int, int]) -> Any:
    """Zeros of the canvas' size with `tensor`'s elements every `stride` from `first`."""
    for dim, (begin, step, extent) in zip((-2, -1), zip(first, stride, canvas)):
        tensor = _place_along(tensor, dim, begin, step, extent)
    return tensor


def _place_along(tensor: Any, dim: int, begin: int, step: int, extent: int) -> Any:
    dim = dim % tensor.dim()
    count = tensor.shape[dim]
    after = [0, 0] * (tensor.dim() - dim - 1)
    if step > 1:
        spread = _aten.constant_pad_nd(tensor.unsqueeze(dim + 1), [*after, 0, step - 1])
        tensor = _aten.slice(spread.flatten(dim, dim + 1), dim, 0, (count - 1) * step + 1)
    high = extent - begin - tensor.shape[dim]
    if high < 0:
        tensor, high = _aten.slice(tensor, dim, 0, extent - begin), 0
    return _aten.constant_pad_nd(tensor, [*after, begin, high])


@decomposes(_aten.max_pool2d_with_indices_backward.default)
def _max_pool_backward(
    gradient: Any, data: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    indices: Any,
) -> Any:  # fmt: skip
    """For each position in the window: the gradients whose maximum was there, spread over the plane."""
    kernel, padding, dilation = _pair(kernel_size), _pair(padding), _pair(dilation)
    stride = _pair(stride, kernel)
    height, width = data.shape[-2:]
    if kernel[0] * kernel[1] > _MOST_OFFSETS:
        return _scatter_gradient(gradient, data, indices)
    rows = (torch.arange(gradient.shape[-2]) * stride[0] - padding[0]).reshape(-1, 1)
    columns = torch.arange(gradient.shape[-1]) * stride[1] - padding[1]
    canvas = tuple(
        max(extent + 2 * pad, (count - 1) * step + (window - 1) * gap + 1)
        for extent, pad, count, step, window, gap in zip(
            (height, width), padding, gradient.shape[-2:], stride, kernel, dilation
        )
    )
    total = None
    for row in range(0, kernel[0] * dilation[0], dilation[0]):
        for column in range(0, kernel[1] * dilation[1], dilation[1]):
            here = (rows + row) * width + (columns + column)
            part = torch.where(indices == here, gradient, torch.zeros((), dtype=gradient.dtype))
            placed = _place(part, (row, column), stride, (canvas[0], canvas[1]))
            total = placed if total is None else total + placed
    return total[..., padding[0] : padding[0] + height, padding[1] : padding[1] + width]  # type: ignore[index]


@decomposes(
    _aten.max_pool3d_with_indices_backward.default,
)
def _max_pool3d_backward(
    gradient: Any, data: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    indices: Any,
) -> Any:  # fmt: skip
    return _scatter_gradient(gradient, data, indices, 3)


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
