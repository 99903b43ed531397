"""The fused layers that `nn.TransformerEncoderLayer` and `nn.MultiheadAttention` call for inference."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes

_aten = torch.ops.aten

_PADDING = 1
"""Type of a mask of each sequence's keys; others are of scores."""


@decomposes(_aten._native_multi_head_attention.default)
def _attention(
    query: Any, key: Any, value: Any, embed_dim: int, num_head: int, qkv_weight: Any, qkv_bias: Any,
    proj_weight: Any, proj_bias: Any, mask: Any = None, need_weights: bool = True,
    average_attn_weights: bool = True, mask_type: int | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The layer's output, and the weights where they are wanted (else nothing)."""
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    queries, keys, values = (
        _split_heads(functional.linear(data, weight, bias), num_head)
        for data, weight, bias in zip((query, key, value), weights, biases)
    )
    allowed = None if mask is None else ~_broadcast(mask, mask_type)
    attended = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=allowed)
    joined = attended.transpose(1, 2).flatten(2)
    scores = _weights(queries, keys, allowed, average_attn_weights) if need_weights else None
    return functional.linear(joined, proj_weight, proj_bias), scores


def _split_heads(data: Any, heads: int) -> Any:
    return data.unflatten(-1, (heads, -1)).transpose(1, 2)


def _broadcast(mask: Any, mask_type: int | None) -> Any:
    """The mask, set where nothing is attended to, as it meets [batch, heads, queries, keys]."""
    mask = mask.to(torch.bool)
    return mask[:, None, None] if mask_type == _PADDING else mask


def _weights(query: Any, key: Any, allowed: Any, average: bool) -> Any:
    scores = torch.matmul(query, key.transpose(-1, -2)) * query.shape[-1] ** -0.5
    if allowed is not None:
        scores = torch.where(allowed, scores, -torch.inf)
    weights = torch.softmax(scores, -1)
    return weights.mean(1) if average else weights


@decomposes(_aten._transformer_encoder_layer_fwd.default)
def _encoder_layer(
    src: Any, embed_dim: int, num_heads: int, qkv_weight: Any, qkv_bias: Any, proj_weight: Any,
    proj_bias: Any, use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Any, norm_bias_1: Any,
    norm_weight_2: Any, norm_bias_2: Any, ffn_weight_1: Any, ffn_bias_1: Any, ffn_weight_2: Any,
    ffn_bias_2: Any, mask: Any = None, mask_type: int | None = None,
) -> Any:  # fmt: skip
    """Attention and a feed-forward network, each with what came in added, normalised before or after."""

    def attend(data: Any) -> Any:
        return _attention(
            data, data, data, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask,
            need_weights=False, mask_type=mask_type,
        )[0]  # fmt: skip

    def feed(data: Any) -> Any:
        inner = functional.linear(data, ffn_weight_1, ffn_bias_1)
        inner = functional.gelu(inner) if use_gelu else functional.relu(inner)
        return functional.linear(inner, ffn_weight_2, ffn_bias_2)

    steps = ((attend, norm_weight_1, norm_bias_1), (feed, norm_weight_2, norm_bias_2))
    for step, weight, bias in steps:
        if norm_first:
            src = src + step(functional.layer_norm(src, [embed_dim], weight, bias, eps))
        else:
            src = functional.layer_norm(src + step(src), [embed_dim], weight, bias, eps)
    return src
