"""The loss by comparisons is PyTorch's own, whatever its shape, weights and reduction."""

from __future__ import annotations

import pytest
import torch

from neuron_tools.frontends.torch_xla.chosen_classes import COMPARED

_aten = torch.ops.aten
FLAT = (_aten.nll_loss_forward.default, _aten.nll_loss_backward.default)
PLANES = (_aten.nll_loss2d_forward.default, _aten.nll_loss2d_backward.default)
CASES = [(FLAT, (5,), ()), (FLAT, (7, 5), (7,)), (PLANES, (2, 5, 3, 4), (2, 3, 4))]


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("operators", "shape", "rows"), CASES)
def test_loss_and_gradient_are_pytorchs(operators, shape, rows, weighted, reduction):
    forward, backward = operators
    torch.manual_seed(1)
    scores, target = torch.randn(shape).log_softmax(min(1, len(shape) - 1)), torch.randint(0, 5, rows)
    if rows:
        target.view(-1)[0] = 3  # this one does not count
    weight = torch.rand(5) + 0.5 if weighted else None
    arguments = (target, weight, reduction, 3 if rows else -100)
    loss, total = forward(scores, *arguments)
    made, made_total = COMPARED[forward](scores, *arguments)
    assert torch.allclose(made, loss)
    assert reduction == 0 or torch.allclose(made_total, total)
    gradient = torch.rand_like(loss)
    expected = backward(gradient, scores, *arguments, total)
    assert torch.allclose(COMPARED[backward](gradient, scores, *arguments, total), expected)
