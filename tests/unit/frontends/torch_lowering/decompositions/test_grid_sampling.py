"""Tests for neuron_tools/frontends/torch_lowering/decompositions/grid_sampling.py."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from neuron_tools.frontends.torch_lowering.decompositions.grid_sampling import (
    Interpolation,
    Padding,
    grid_sampler,
)

FORWARD = {2: torch.ops.aten.grid_sampler_2d, 3: torch.ops.aten.grid_sampler_3d}
CASES = [
    case
    for case in product(FORWARD, Interpolation, Padding, (False, True))
    if case[:2] != (3, Interpolation.CUBIC)
]


@pytest.mark.parametrize("sizes", [(5, 7, 4), (1, 3, 1)])
@pytest.mark.parametrize(("dimensions", "interpolation", "padding", "align_corners"), CASES)
def test_values_and_gradients_are_those_of_pytorch(
    dimensions: int, interpolation: int, padding: int, align_corners: bool, sizes: tuple[int, ...]
) -> None:
    generator = torch.Generator().manual_seed(0)
    data = torch.randn(2, 3, *sizes[:dimensions], generator=generator, requires_grad=True)
    points = (4, 6, 5)[:dimensions]
    grid = (torch.rand(2, *points, dimensions, generator=generator) * 4 - 2).requires_grad_()
    arguments = data, grid, int(interpolation), int(padding), align_corners
    expected, found = FORWARD[dimensions](*arguments), grid_sampler(*arguments)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    weights = torch.randn(expected.shape, generator=generator)
    pairs = zip(
        torch.autograd.grad((found * weights).sum(), (data, grid), materialize_grads=True),
        torch.autograd.grad((expected * weights).sum(), (data, grid)),
    )
    for gradient, reference in pairs:
        torch.testing.assert_close(gradient, reference, rtol=1e-4, atol=1e-4)


def test_sixteen_bits_are_added_up_in_more() -> None:
    data, grid = torch.rand(1, 2, 300, 300), torch.rand(1, 4, 4, 2) * 2 - 1
    data, grid = data.bfloat16(), grid.bfloat16()
    found = grid_sampler(data, grid, 0, 0, False)
    assert found.dtype == torch.bfloat16
    expected = torch.ops.aten.grid_sampler_2d(data.float(), grid.float(), 0, 0, False)
    torch.testing.assert_close(found, expected.bfloat16())


@pytest.mark.parametrize("coordinate", [float("inf"), float("-inf"), float("nan"), 1e30])
def test_points_that_lie_nowhere_have_no_value(coordinate: float) -> None:
    grid = torch.full((1, 1, 1, 2), coordinate)
    assert grid_sampler(torch.ones(1, 2, 3, 3), grid, 0, 0, False).tolist() == [[[[0.0]], [[0.0]]]]
