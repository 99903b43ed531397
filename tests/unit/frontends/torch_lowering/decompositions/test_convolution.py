"""Gradients of convolutions, as convolutions: the same numbers as PyTorch's own."""

from __future__ import annotations

import pytest
import torch

from neuron_tools.frontends.torch_lowering.decompositions.convolution import _backward_as_convolutions


@pytest.mark.parametrize(
    ("side", "kernel", "stride", "padding", "dilation", "groups"),
    [
        (9, 3, 1, 1, 1, 1),
        (9, 3, 2, 1, 1, 1),
        (10, 3, 2, 1, 1, 2),
        (11, 4, 3, 0, 1, 1),
        (12, 3, 2, 2, 2, 4),
        (8, 2, 2, 0, 1, 1),
        (7, 1, 2, 0, 1, 1),
        (9, 3, 1, 0, 3, 2),
    ],
)
def test_gradients_equal_pytorchs(side, kernel, stride, padding, dilation, groups):
    torch.manual_seed(0)
    data, weight = torch.randn(3, 4, side, side + 1), torch.randn(8, 4 // groups, kernel, kernel)
    both = [[stride] * 2, [padding] * 2, [dilation] * 2]
    result = torch.ops.aten.convolution(data, weight, None, *both, False, [0, 0], groups)
    arguments = (torch.randn_like(result), data, weight, [8], *both, False, [0, 0], groups, [True] * 3)
    expected = torch.ops.aten.convolution_backward(*arguments)
    for ours, theirs in zip(_backward_as_convolutions(*arguments), expected):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
