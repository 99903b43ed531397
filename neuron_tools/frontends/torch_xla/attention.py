"""Attention on `xla` as one operation of the graph: taken apart, its scores would pass HBM."""

from __future__ import annotations

from typing import Any

import torch

from neuron_tools.frontends.torch_xla.tensor import XlaTensor

_aten = torch.ops.aten


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """As `torch.nn.functional.scaled_dot_product_attention`; taken apart as PyTorch does where the device
    has no such operation.

    Args:
        query, key, value: (batch, heads, rows, size).
        attn_mask: Of what is seen, or what is added to the scores: (batch, heads, rows, columns), broadcast
            to that from the right.
    """
    if not _is_whole(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa):
        return _aten.scaled_dot_product_attention.default.decompose(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    bias = _added(attn_mask, query)
    whole = _aten._scaled_dot_product_fused_attention_overrideable
    return whole(query, key, value, bias, dropout_p, is_causal, False, scale=scale)[0]


def _is_whole(
    query: Any, key: Any, value: Any, mask: Any, dropout_p: float, is_causal: bool, grouped: bool
) -> bool:
    """What the `neuron` device computes whole: `choose_attention` of `csrc/attention_kernels.cpp`."""
    if not all(
        isinstance(tensor, XlaTensor) for tensor in (query, key, value, *([] if mask is None else [mask]))
    ):
        return False
    has_elements = query.numel() > 0 and key.numel() > 0
    takes_mask = mask is None or (not (mask.requires_grad or is_causal) and _is_mask_of(query, key, mask))
    has_shape = query.dim() == key.dim() == 4 and key.shape == value.shape and _needs_no_copies(query, key)
    return bool(has_shape and has_elements and takes_mask and dropout_p == 0.0 and not grouped)


def _needs_no_copies(query: Any, key: Any) -> bool:
    """Whether batches, heads and sizes are equal, so that nothing is broadcast."""
    return bool(query.shape[:2] == key.shape[:2] and query.shape[3] == key.shape[3])


def _is_mask_of(query: Any, key: Any, mask: Any) -> bool:
    """Whether a mask can be broadcast to the scores, which are not broadcast to it."""
    pairs = zip(reversed(mask.shape), (key.shape[-2], *reversed(query.shape[:-1])))
    return mask.dim() <= query.dim() and all(extent in (1, whole) for extent, whole in pairs)


def _added(mask: Any, query: Any) -> Any:
    """What is added to the scores, of four dimensions as the operator's backward pass takes it."""
    if mask is None:
        return None
    mask = mask.view(*[1] * (query.dim() - mask.dim()), *mask.shape)
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, float("-inf"))
