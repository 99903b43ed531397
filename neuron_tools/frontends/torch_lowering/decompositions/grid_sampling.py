"""Sampling at points (`grid_sample`): one gather of rows, each the channels at a place, then a weighted sum.

A gather of single elements would take a DMA element for each channel of each neighbour. Formulas: PyTorch's
documentation of `torch.nn.functional.grid_sample`; cubic weights by R. Keys, "Cubic convolution interpolation
for digital image processing", 1981, with a = -0.75 as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from math import prod
from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes

_aten = torch.ops.aten
_CUBIC = -0.75

Taps = tuple[Any, Any]
"""Of one dimension: places [taps, batch, *points] as whole numbers of float, and the weight of each."""


class Interpolation(IntEnum):
    """As PyTorch counts them."""

    LINEAR = 0
    NEAREST = 1
    CUBIC = 2


class Padding(IntEnum):
    """What stands beyond the edges, as PyTorch counts it."""

    ZEROS = 0
    BORDER = 1
    REFLECTION = 2


@decomposes(_aten.grid_sampler_2d.default, _aten.grid_sampler_3d.default)
def grid_sampler(data: Any, grid: Any, interpolation: int, padding: int, align_corners: bool) -> Any:
    """Values of `data` [batch, channels, *sizes] at the points of `grid` [batch, *points, dimensions].

    A point's first coordinate is that of the last dimension; -1 and 1 are the edges. Elements of 16 bits are
    added up in 32, as a position in 16 bits would not tell neighbours apart.
    """
    sizes, exact = data.shape[2:], torch.promote_types(grid.dtype, torch.float32)
    taps = [
        _taps(_unscaled(coordinate, size, align_corners), size, interpolation, padding, align_corners)
        for coordinate, size in zip(reversed(grid.to(exact).unbind(-1)), sizes)
    ]
    places, weights = _combined(taps, sizes)
    rows = data.movedim(1, -1).reshape(-1, data.shape[1])[places]
    return (rows * weights.unsqueeze(-1)).sum(0).to(data.dtype).movedim(-1, 1)


def _unscaled(coordinate: Any, size: int, align_corners: bool) -> Any:
    """A coordinate in elements, the first of which is at 0."""
    return coordinate * ((size - 1) / 2 if align_corners else size / 2) + (size - 1) / 2


def _taps(position: Any, size: int, interpolation: int, padding: int, align_corners: bool) -> Taps:
    """The elements near a position along one dimension, and their weights."""

    def inside(place: Any) -> Any:
        return _padded(place, size, padding, align_corners)

    if interpolation == Interpolation.CUBIC:
        low = torch.floor(position)
        return _stacked([inside(low + offset) for offset in (-1, 0, 1, 2)], _cubic_weights(position - low))
    position = inside(position)
    if interpolation == Interpolation.NEAREST:
        return _stacked([torch.round(position)], [torch.ones_like(position)])
    low = torch.floor(position)
    return _stacked([low, low + 1], [low + 1 - position, position - low])


def _stacked(places: Sequence[Any], weights: Sequence[Any]) -> Taps:
    return torch.stack(list(places)), torch.stack(list(weights))


def _cubic_weights(after: Any) -> list[Any]:
    """Weights of the four elements around a position that is `after` the second of them."""
    return [_far(1 + after), _near(after), _near(1 - after), _far(2 - after)]


def _near(distance: Any) -> Any:
    return ((_CUBIC + 2) * distance - (_CUBIC + 3)) * distance * distance + 1


def _far(distance: Any) -> Any:
    return ((_CUBIC * distance - 5 * _CUBIC) * distance + 8 * _CUBIC) * distance - 4 * _CUBIC


def _padded(position: Any, size: int, padding: int, align_corners: bool) -> Any:
    """A position as the padding moves it back between the edges."""
    if padding == Padding.ZEROS:
        return position
    if padding == Padding.REFLECTION:
        position = _reflected(position, size, align_corners)
    return torch.clamp(position, 0, size - 1)


def _reflected(position: Any, size: int, align_corners: bool) -> Any:
    """A position, reflected at the edges until it lies between them."""
    low, span = (0.0, size - 1) if align_corners else (-0.5, size)
    if span == 0:
        return torch.zeros_like(position)
    beyond = torch.remainder(torch.abs(position - low), 2 * span)
    return low + span - torch.abs(beyond - span)


def _combined(taps: Sequence[Taps], sizes: Sequence[int]) -> Taps:
    """Every choice of one tap per dimension: rows of the flat data [choices, batch, *points], and weights."""
    first = taps[0][0]
    batch = torch.arange(first.shape[1], device=first.device) * prod(sizes)
    rows = batch.reshape(1, -1, *[1] * (first.dim() - 2))
    weights = torch.ones_like(rows, dtype=first.dtype)
    for dim, ((places, factors), size) in enumerate(zip(taps, sizes)):
        is_inside = (places >= 0) & (places < size)
        steps = torch.where(is_inside, places, 0).to(torch.int64) * prod(sizes[dim + 1 :])
        rows = (rows.unsqueeze(1) + steps).flatten(0, 1)
        weights = (weights.unsqueeze(1) * torch.where(is_inside, factors, 0)).flatten(0, 1)
    return rows, weights
