"""Attention backward, as its decomposition computes it for those who take no operation of ours."""

from __future__ import annotations

import pytest
import torch

from neuron_tools.frontends.torch_lowering.decompositions import attention

_aten = torch.ops.aten


@pytest.mark.parametrize("has_mask", [False, True])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("key_heads", [4, 2])
def test_gradients_are_atens(is_causal: bool, has_mask: bool, key_heads: int) -> None:
    query, key, value = (torch.randn(2, heads, 6, 8) for heads in (4, key_heads, key_heads))
    mask = torch.randn(2, 1, 6, 6) if has_mask and not is_causal else None
    output, logarithms = _aten._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, 0.0, is_causal, attn_mask=mask
    )
    arguments = (torch.randn_like(output), query, key, value, output, logarithms, 0.0, is_causal)
    expected = _aten._scaled_dot_product_flash_attention_for_cpu_backward(*arguments, attn_mask=mask)
    found = attention._flash_backward(*arguments, attn_mask=mask)
    for ours, theirs in zip(found, expected):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
