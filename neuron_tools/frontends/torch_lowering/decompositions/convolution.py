"""Convolutions under the names the device uses, and convolution backward as convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes, decomposes_refused

_aten = torch.ops.aten


@decomposes(_aten.convolution_overrideable.default)
def _convolution(
    data: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    return _aten.convolution(
        data, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


@decomposes(_aten.convolution_backward_overrideable.default)
def _convolution_backward(
    gradient: Any, data: Any, weight: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, output_mask: Any,
) -> Any:  # fmt: skip
    bias_sizes = [weight.shape[1] * groups if transposed else weight.shape[0]]
    return _aten.convolution_backward(
        gradient, data, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
        output_mask,
    )  # fmt: skip


@decomposes(_aten.convolution_backward.default)
def _backward_as_convolutions(
    gradient: Any, data: Any, weight: Any, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, output_mask: Any,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Gradients of data, weight and bias, each where wanted."""
    rank = data.dim() - 2
    stride, padding, dilation, output_padding = _each(rank, stride, padding, dilation, output_padding)
    results: list[Any] = [None, None, None]
    if output_mask[0]:
        extra = _missing(data, gradient, weight, stride, padding, dilation)
        results[0] = _aten.convolution(
            gradient, weight, None, stride, padding, dilation, not transposed,
            [0] * rank if transposed else extra, groups,
        )  # fmt: skip
    if output_mask[1]:
        pair = (gradient, data) if transposed else (data, gradient)
        results[1] = _weight_gradient(*pair, weight, stride, padding, dilation, groups)
    if output_mask[2]:
        results[2] = gradient.sum([0, *range(2, gradient.dim())])
    return results[0], results[1], results[2]


@decomposes_refused(_aten.convolution.default)
def _cropped_transposed_convolution(
    data: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    """A transposed convolution without padding, cropped: torch-mlir mixes up uneven output paddings."""
    rank = data.dim() - 2
    stride, padding, dilation, output_padding = _each(rank, stride, padding, dilation, output_padding)
    if not transposed or not any(padding + output_padding):
        raise NotImplementedError("only padding of transposed convolutions can be taken away")
    zeros = [0] * rank
    result = _aten.convolution(data, weight, None, stride, zeros, dilation, True, zeros, groups)
    for d in range(rank):
        wanted = result.shape[d + 2] - 2 * padding[d] + output_padding[d]
        missing = padding[d] + wanted - result.shape[d + 2]
        if missing > 0:
            result = _aten.constant_pad_nd(result, [0, 0] * (rank - 1 - d) + [0, missing])
        result = _aten.slice(result, d + 2, padding[d], padding[d] + wanted)
    return result if bias is None else result + bias.reshape(-1, *[1] * rank)


def _each(rank: int, *values: Any) -> Iterator[list[int]]:
    """Lists with a number for each dimension, also where one stands for all."""
    return (list(value) * (rank if len(value) == 1 else 1) for value in values)


def _missing(data: Any, gradient: Any, weight: Any, stride: Any, padding: Any, dilation: Any) -> list[int]:
    """How much a transposed convolution's result falls short of the data, per dimension."""
    return [
        data.shape[d + 2]
        - (
            (gradient.shape[d + 2] - 1) * stride[d]
            - 2 * padding[d]
            + dilation[d] * (weight.shape[d + 2] - 1)
            + 1
        )
        for d in range(data.dim() - 2)
    ]


def _weight_gradient(
    data: Any, gradient: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """The data convolved with the gradient: batch is contracted, stride and dilation change places."""
    batch, channels = data.shape[:2]
    outer, rank, per_group = gradient.shape[2:], gradient.dim() - 2, channels // groups
    left = data.reshape(batch, groups, per_group, *data.shape[2:]).transpose(0, 2) if groups > 1 else data
    left = left.reshape(per_group, groups * batch, *data.shape[2:]) if groups > 1 else data.transpose(0, 1)
    missing = [
        (outer[d] - 1) * stride[d] + dilation[d] * (weight.shape[d + 2] - 1) + 1
        - data.shape[d + 2] - 2 * padding[d]
        for d in range(rank)
    ]  # fmt: skip
    if any(missing):  # at the end of an axis the window leaves pixels out, or reaches beyond
        ends = [size for d in reversed(range(rank)) for size in (padding[d], padding[d] + missing[d])]
        left, padding = _aten.constant_pad_nd(left, ends), [0] * rank
    right = gradient.transpose(0, 1)
    result = _aten.convolution(left, right, None, dilation, padding, stride, False, [0] * rank, groups)
    return result.transpose(0, 1).reshape(weight.shape)
