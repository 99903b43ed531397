"""Upsampling: a small matrix per dimension, backward its transpose; whole factors repeat, and add blocks."""

from __future__ import annotations

from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.decompositions.pooling import apply_along
from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes

_aten = torch.ops.aten


def _nearest_matrix(outputs: int, inputs: int, exact: bool, scale: float | None) -> Any:
    """[outputs, inputs]: which input element each output element takes."""
    ratio = 1.0 / scale if scale else inputs / outputs
    position = torch.arange(outputs, dtype=torch.float32)
    source = torch.clamp(torch.floor((position + 0.5 if exact else position) * ratio), max=inputs - 1)
    return (source.unsqueeze(1) == torch.arange(inputs, dtype=torch.float32)).to(torch.float32)


def _linear_matrix(outputs: int, inputs: int, align_corners: bool, scale: float | None) -> Any:
    """[outputs, inputs]: the two weights of each output element."""
    position = torch.arange(outputs, dtype=torch.float32)
    if align_corners:
        source = position * ((inputs - 1) / (outputs - 1) if outputs > 1 else 0.0)
    else:
        source = torch.clamp((position + 0.5) * (1.0 / scale if scale else inputs / outputs) - 0.5, min=0.0)
    distance = torch.abs(source.unsqueeze(1) - torch.arange(inputs, dtype=torch.float32))
    weights = torch.clamp(1.0 - distance, min=0.0)
    return weights / weights.sum(1, keepdim=True)


def _smoothing_matrix(
    outputs: int, inputs: int, align_corners: bool, scale: float | None, cubic: bool
) -> Any:
    """[outputs, inputs]: the weights of each output element, over as many inputs as it stands for."""
    if align_corners:
        ratio = (inputs - 1) / (outputs - 1) if outputs > 1 else 0.0
    else:
        ratio = 1.0 / scale if scale else inputs / outputs
    centre = (torch.arange(outputs, dtype=torch.float32) + 0.5) * ratio
    distance = torch.abs(torch.arange(inputs, dtype=torch.float32) + 0.5 - centre.unsqueeze(1))
    distance = distance / max(ratio, 1.0)
    weights = _cubic_weights(distance) if cubic else torch.clamp(1.0 - distance, min=0.0)
    return weights / weights.sum(1, keepdim=True)


def _cubic_weights(distance: Any) -> Any:
    """Keys' convolution kernel with the slope -1/2 at 1, which Pillow and PyTorch smooth with."""
    near = (1.5 * distance - 2.5) * distance * distance + 1.0
    far = ((2.5 - 0.5 * distance) * distance - 4.0) * distance + 2.0
    return torch.where(distance < 1.0, near, torch.where(distance < 2.0, far, torch.zeros_like(distance)))


def _apply(data: Any, matrices: list[Any]) -> Any:
    for dim, matrix in zip(range(-len(matrices), 0), matrices):
        data = apply_along(data, matrix.to(data.dtype), dim)
    return data


def _apply_transposed(gradient: Any, matrices: list[Any]) -> Any:
    for dim, matrix in zip(range(-len(matrices), 0), matrices):
        gradient = apply_along(gradient, matrix.to(gradient.dtype).transpose(0, 1), dim)
    return gradient


def _nearest_backward(gradient: Any, input_size: Any, scales: tuple[Any, ...], exact: bool) -> Any:
    inputs = list(input_size)[2:]
    outputs = gradient.shape[2:]
    if _is_whole(outputs, inputs, scales):
        return _sum_blocks(gradient, inputs)
    matrices = [
        _nearest_matrix(wide, narrow, exact, scale) for wide, narrow, scale in zip(outputs, inputs, scales)
    ]
    return _apply_transposed(gradient, matrices)


def _is_whole(outputs: Any, inputs: Any, scales: tuple[Any, ...]) -> bool:
    """Whether each element is taken equally often along every dimension."""
    return all(
        wide % narrow == 0 and (scale is None or scale * narrow == wide)
        for wide, narrow, scale in zip(outputs, inputs, scales)
    )


def _sum_blocks(gradient: Any, inputs: list[int]) -> Any:
    shape = list(gradient.shape[:2])
    for wide, narrow in zip(gradient.shape[2:], inputs):
        shape += [narrow, wide // narrow]
    return gradient.reshape(shape).sum(list(range(3, len(shape), 2)))


def _nearest(data: Any, output_size: Any, scales: tuple[Any, ...], exact: bool) -> Any:
    extents = list(data.shape[2:])
    if _is_whole(output_size, extents, scales):
        return _repeat_blocks(data, list(output_size))
    return _apply(
        data,
        [
            _nearest_matrix(wide, narrow, exact, scale)
            for wide, narrow, scale in zip(output_size, extents, scales)
        ],
    )


def _repeat_blocks(data: Any, outputs: list[int]) -> Any:
    """Each element as often along each dimension as the outputs are more than it has."""
    leading, extents = list(data.shape[:2]), list(data.shape[2:])
    apart, repeated = list(leading), list(leading)
    for wide, narrow in zip(outputs, extents):
        apart += [narrow, 1]
        repeated += [narrow, wide // narrow]
    return data.reshape(apart).expand(repeated).reshape(leading + outputs)


@decomposes(_aten.upsample_nearest1d.default)
def _nearest1d_forward(data: Any, output_size: Any, scales: Any = None) -> Any:
    return _nearest(data, output_size, (scales,), False)


@decomposes(_aten._upsample_nearest_exact1d.default)
def _nearest_exact1d_forward(data: Any, output_size: Any, scales: Any = None) -> Any:
    return _nearest(data, output_size, (scales,), True)


@decomposes(_aten.upsample_nearest2d.default)
def _nearest2d_forward(data: Any, output_size: Any, scales_h: Any = None, scales_w: Any = None) -> Any:
    return _nearest(data, output_size, (scales_h, scales_w), False)


@decomposes(_aten._upsample_nearest_exact2d.default)
def _nearest_exact2d_forward(data: Any, output_size: Any, scales_h: Any = None, scales_w: Any = None) -> Any:
    return _nearest(data, output_size, (scales_h, scales_w), True)


@decomposes(_aten.upsample_nearest3d.default)
def _nearest3d_forward(
    data: Any, output_size: Any, scales_d: Any = None, scales_h: Any = None, scales_w: Any = None
) -> Any:
    return _nearest(data, output_size, (scales_d, scales_h, scales_w), False)


@decomposes(_aten._upsample_nearest_exact3d.default)
def _nearest_exact3d_forward(
    data: Any, output_size: Any, scales_d: Any = None, scales_h: Any = None, scales_w: Any = None
) -> Any:
    return _nearest(data, output_size, (scales_d, scales_h, scales_w), True)


def _linear(data: Any, output_size: Any, align_corners: bool, scales: tuple[Any, ...]) -> Any:
    return _apply(
        data,
        [
            _linear_matrix(wide, narrow, align_corners, scale)
            for wide, narrow, scale in zip(output_size, data.shape[2:], scales)
        ],
    )


@decomposes(_aten.upsample_linear1d.default)
def _linear1d_forward(data: Any, output_size: Any, align_corners: bool, scales: Any = None) -> Any:
    return _linear(data, output_size, align_corners, (scales,))


@decomposes(_aten.upsample_bilinear2d.default)
def _bilinear2d_forward(
    data: Any, output_size: Any, align_corners: bool, scales_h: Any = None, scales_w: Any = None
) -> Any:
    return _linear(data, output_size, align_corners, (scales_h, scales_w))


@decomposes(_aten.upsample_trilinear3d.default)
def _trilinear3d_forward(
    data: Any, output_size: Any, align_corners: bool, scales_d: Any = None, scales_h: Any = None,
    scales_w: Any = None,
) -> Any:  # fmt: skip
    return _linear(data, output_size, align_corners, (scales_d, scales_h, scales_w))


@decomposes(_aten.upsample_nearest1d_backward.default)
def _nearest1d(gradient: Any, output_size: Any, input_size: Any, scales: Any = None) -> Any:
    return _nearest_backward(gradient, input_size, (scales,), False)


@decomposes(_aten._upsample_nearest_exact1d_backward.default)
def _nearest_exact1d(gradient: Any, output_size: Any, input_size: Any, scales: Any = None) -> Any:
    return _nearest_backward(gradient, input_size, (scales,), True)


@decomposes(_aten.upsample_nearest2d_backward.default)
def _nearest2d(
    gradient: Any, output_size: Any, input_size: Any, scales_h: Any = None, scales_w: Any = None
) -> Any:
    return _nearest_backward(gradient, input_size, (scales_h, scales_w), False)


@decomposes(_aten._upsample_nearest_exact2d_backward.default)
def _nearest_exact2d(
    gradient: Any, output_size: Any, input_size: Any, scales_h: Any = None, scales_w: Any = None
) -> Any:
    return _nearest_backward(gradient, input_size, (scales_h, scales_w), True)


@decomposes(_aten.upsample_nearest3d_backward.default)
def _nearest3d(
    gradient: Any, output_size: Any, input_size: Any, scales_d: Any = None, scales_h: Any = None,
    scales_w: Any = None,
) -> Any:  # fmt: skip
    return _nearest_backward(gradient, input_size, (scales_d, scales_h, scales_w), False)


@decomposes(_aten.upsample_linear1d_backward.default)
def _linear1d(
    gradient: Any, output_size: Any, input_size: Any, align_corners: bool, scales: Any = None
) -> Any:
    matrix = _linear_matrix(gradient.shape[-1], input_size[-1], align_corners, scales)
    return _apply_transposed(gradient, [matrix])


@decomposes(_aten.upsample_bilinear2d_backward.default)
def _bilinear2d(
    gradient: Any, output_size: Any, input_size: Any, align_corners: bool, scales_h: Any = None,
    scales_w: Any = None,
) -> Any:  # fmt: skip
    return _apply_transposed(
        gradient,
        [
            _linear_matrix(gradient.shape[-2], input_size[-2], align_corners, scales_h),
            _linear_matrix(gradient.shape[-1], input_size[-1], align_corners, scales_w),
        ],
    )


@decomposes(_aten.upsample_trilinear3d_backward.default)
def _trilinear3d(
    gradient: Any, output_size: Any, input_size: Any, align_corners: bool, scales_d: Any = None,
    scales_h: Any = None, scales_w: Any = None,
) -> Any:  # fmt: skip
    matrices = [
        _linear_matrix(wide, narrow, align_corners, scale)
        for wide, narrow, scale in zip(gradient.shape[2:], input_size[2:], (scales_d, scales_h, scales_w))
    ]
    return _apply_transposed(gradient, matrices)


def _decompose_smoothing(forward: Any, backward: Any, cubic: bool) -> None:
    def matrices(outputs: Any, inputs: Any, align_corners: bool, scales: tuple[Any, ...]) -> list[Any]:
        return [
            _smoothing_matrix(wide, narrow, align_corners, scale, cubic)
            for wide, narrow, scale in zip(outputs, inputs, scales)
        ]

    @decomposes(forward)
    def smooth_forward(
        data: Any, output_size: Any, align_corners: bool, scales_h: Any = None, scales_w: Any = None
    ) -> Any:
        return _apply(data, matrices(output_size, data.shape[2:], align_corners, (scales_h, scales_w)))

    @decomposes(backward)
    def smooth(
        gradient: Any, output_size: Any, input_size: Any, align_corners: bool, scales_h: Any = None,
        scales_w: Any = None,
    ) -> Any:  # fmt: skip
        outputs, inputs = gradient.shape[2:], input_size[2:]
        return _apply_transposed(gradient, matrices(outputs, inputs, align_corners, (scales_h, scales_w)))


_decompose_smoothing(
    _aten._upsample_bilinear2d_aa.default, _aten._upsample_bilinear2d_aa_backward.default, cubic=False
)
_decompose_smoothing(
    _aten._upsample_bicubic2d_aa.default, _aten._upsample_bicubic2d_aa_backward.default, cubic=True
)
