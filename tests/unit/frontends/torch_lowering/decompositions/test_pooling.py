"""Pooling backward, as its decomposition computes it."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch

from neuron_tools.frontends.torch_lowering.builder import GraphBuilder
from neuron_tools.frontends.torch_lowering.decompositions import pooling
from neuron_tools.frontends.torch_lowering.layout import StoredTensor
from neuron_tools.frontends.torch_lowering.lowering import lower_to_text

_aten = torch.ops.aten
WINDOWS = [
    (size, stride, pad, gap)
    for size, stride, pad, gap in product((2, 3, 5), (1, 2, 3), (0, 1, 2), (1, 2))
    if pad <= size // 2
]


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(("size", "stride", "pad", "gap"), WINDOWS)
def test_gradients_go_to_the_maxima_of_windows_of_any_size_stride_and_border(
    size: int, stride: int, pad: int, gap: int, ceil_mode: bool
) -> None:
    data = torch.randn(2, 3, 12, 9, dtype=torch.float64).round(decimals=1)
    options = ([size] * 2, [stride] * 2, [pad] * 2, [gap] * 2, ceil_mode)
    pooled, indices = _aten.max_pool2d_with_indices(data, *options)
    gradient = torch.randn_like(pooled)
    expected = _aten.max_pool2d_with_indices_backward(gradient, data, *options, indices)
    assert torch.allclose(pooling._max_pool_backward(gradient, data, *options, indices), expected)


def test_one_size_stands_for_all_dimensions_of_a_volume() -> None:
    data = torch.randn(2, 6, 8, 7, dtype=torch.float64)
    pooled, indices = _aten.max_pool3d_with_indices(data, [3], [2], [1])
    gradient = torch.randn_like(pooled)
    options = ([3], [2], [1], [1], False)
    expected = _aten.max_pool3d_with_indices_backward(gradient, data, *options, indices)
    assert torch.allclose(pooling._max_pool3d_backward(gradient, data, *options, indices), expected)


def test_other_compilers_get_pooling_backward_spelled_out() -> None:
    data = torch.randn(2, 3, 9, 9)
    pooled, indices = _aten.max_pool2d_with_indices(data, [3, 3], [2, 2], [1, 1])
    arguments = (pooled, data, [3, 3], [2, 2], [1, 1], [1, 1], False, indices)

    def build(builder: GraphBuilder) -> list[Any]:
        placed = [
            StoredTensor(each.dtype, tuple(each.shape), tuple(each.stride())).place(builder)
            if isinstance(each, torch.Tensor)
            else each
            for each in arguments
        ]
        return [builder.call(_aten.max_pool2d_with_indices_backward.default, placed, {}, row=0)]

    assert lower_to_text(build).missing == ()
