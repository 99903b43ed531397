"""Attention with dropout is one operator: its values and gradients are those of the weights that it kept."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

DEVICE = torch.device("neuron")
PROBABILITY, SIZE = 0.25, 96
SHAPE = (2, 3, SIZE, SIZE)
TOLERANCES = {torch.float32: 1e-5, torch.bfloat16: 0.04, torch.float64: 1e-10}


def _attention(operands: list[Tensor], mask: Tensor | None, *, is_causal: bool) -> Tensor:
    torch.manual_seed(3)
    return F.scaled_dot_product_attention(
        *operands, attn_mask=mask, dropout_p=PROBABILITY, is_causal=is_causal
    )


def _reference(operands: list[Tensor], mask: Tensor | None, kept: Tensor, *, is_causal: bool) -> Tensor:
    """Attention of fp64 operands with the weights of these places."""
    query, key, value = operands
    scores = query @ key.transpose(-2, -1) / SIZE**0.5
    if is_causal:
        scores = scores.masked_fill(torch.ones(SIZE, SIZE).tril() == 0, -torch.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return (torch._safe_softmax(scores, -1) * kept / (1 - PROBABILITY)) @ value


def _mask(kind: str, dtype: torch.dtype) -> Tensor | None:
    if kind == "added":
        return torch.randn(2, 1, SIZE, SIZE, dtype=dtype)
    allowed = torch.rand(2, 1, SIZE, SIZE) > 0.3
    allowed[0, 0, 5] = False
    return allowed if kind == "allowed" else None


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("kind", ["none", "causal", "added", "allowed"])
def test_result_and_gradients_are_those_of_the_weights_kept(kind: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    operands, gradient = [torch.randn(SHAPE, dtype=dtype) for _ in range(3)], torch.randn(SHAPE, dtype=dtype)
    mask, is_causal = _mask(kind, dtype), kind == "causal"
    device_mask = None if mask is None else mask.to(DEVICE)
    units = torch.eye(SIZE, dtype=dtype).expand(SHAPE).contiguous()
    weights = _attention(
        [each.to(DEVICE) for each in (*operands[:2], units)], device_mask, is_causal=is_causal
    )
    kept = weights.cpu() != 0

    given = [each.to(DEVICE).requires_grad_() for each in operands]
    result = _attention(given, device_mask, is_causal=is_causal)
    result.backward(gradient.to(DEVICE))
    wide = [each.double().requires_grad_() for each in operands]
    expected = _reference(wide, mask, kept, is_causal=is_causal)
    expected.backward(gradient.double())
    pairs = [(result, expected), *((ours.grad, theirs.grad) for ours, theirs in zip(given, wide))]
    for ours, theirs in pairs:
        assert ours.dtype == dtype
        torch.testing.assert_close(
            ours.detach().cpu().double(), theirs.detach(), rtol=0, atol=TOLERANCES[dtype]
        )


def test_the_expected_share_is_kept_and_each_call_draws_anew() -> None:
    torch.manual_seed(0)
    query = torch.zeros(SHAPE, device=DEVICE)
    units = torch.eye(SIZE, device=DEVICE).expand(SHAPE).contiguous()
    first, second = (
        F.scaled_dot_product_attention(query, query, units, dropout_p=PROBABILITY).cpu() for _ in range(2)
    )
    assert abs(float((first != 0).double().mean()) - (1 - PROBABILITY)) < 0.01
    assert not torch.equal(first, second)
    torch.testing.assert_close(first[first != 0] * SIZE, torch.full_like(first[first != 0], 1 / 0.75))


def test_a_compiled_graph_loses_the_weights_that_its_own_forward_pass_lost() -> None:
    operands = [torch.randn(SHAPE) for _ in range(3)]
    step = torch.compile(lambda given: _attention(given, None, is_causal=False))
    found = []
    for run in (step, lambda given: _attention(given, None, is_causal=False)):
        given = [each.to(DEVICE).requires_grad_() for each in operands]
        run(given).square().sum().backward()
        found.append([each.grad.cpu() for each in given])
    for ours, theirs in zip(*found):
        torch.testing.assert_close(ours, theirs)
