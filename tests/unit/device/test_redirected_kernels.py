"""Operators that PyTorch sends to accelerators only have the values that the CPU has for what they mean."""

from __future__ import annotations

import pytest
import torch

aten = torch.ops.aten


@pytest.mark.parametrize(
    ("forward", "backward", "meaning"),
    [
        (aten._softmax, aten._softmax_backward_data, torch.softmax),
        (aten._log_softmax, aten._log_softmax_backward_data, torch.log_softmax),
    ],
)
def test_softmax_gives_float32_for_float16_and_its_gradient_float16(forward, backward, meaning):
    values = torch.linspace(-2, 2, 12).reshape(3, 4).half()
    weights = torch.linspace(0, 1, 12).reshape(3, 4)
    leaf = values.float().requires_grad_()
    expected = meaning(leaf, 1)
    expected.backward(weights)
    result = forward(values.to("neuron"), 1, True)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result.cpu(), expected.detach())
    gradient = backward(weights.to("neuron"), result, 1, torch.float16)
    torch.testing.assert_close(gradient.cpu(), leaf.grad.half())
