"""Fused attention operators and their backward, as products and a softmax."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from neuron_tools.compiler.opcodes import ATTENTION_GRADIENT, ATTENTION_OPERANDS
from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes, decomposes_refused
from neuron_tools.frontends.torch_lowering.intrinsics import Intrinsic, becomes, operator_name

_aten = torch.ops.aten
_LARGEST_HEAD = 128
"""A head's elements that the Tensor engine contracts at once."""


def _scale(query: Any, scale: float | None) -> float:
    return query.shape[-1] ** -0.5 if scale is None else scale


def _scores(query: Any, key: Any, bias: Any, is_causal: bool, scale: float | None) -> Any:
    """Scaled and masked query-key products, in float32."""
    scores = torch.matmul(query, key.transpose(-2, -1)).float() * _scale(query, scale)
    if is_causal:
        rows, columns = torch.arange(query.shape[-2]), torch.arange(key.shape[-2])
        scores = torch.where(rows.unsqueeze(1) >= columns, scores, float("-inf"))
    if bias is None:
        return scores
    if bias.dtype == torch.bool:
        return torch.where(bias, scores, float("-inf"))
    return scores + bias


def _repeat_heads(tensor: Any, heads: int) -> Any:
    """Grouped-query attention: every key/value head serves several query heads."""
    groups = heads // tensor.shape[1]
    return tensor if groups == 1 else tensor.repeat_interleave(groups, 1)


def _sum_groups(gradient: Any, heads: int) -> Any:
    batch, repeated, *rest = gradient.shape
    return gradient if repeated == heads else gradient.reshape(batch, heads, repeated // heads, *rest).sum(2)


def _with_dropout(weights: Any, dropout: float) -> Any:
    return torch.ops.aten.native_dropout(weights, dropout, True)[0] if dropout > 0 else weights


def _forward(
    query: Any, key: Any, value: Any, bias: Any, dropout: float, is_causal: bool, scale: float | None
) -> tuple[Any, Any]:
    """Output and the log of each row's sum of exponentials (float32)."""
    heads = query.shape[1]
    scores = _scores(query, _repeat_heads(key, heads), bias, is_causal, scale)
    largest = scores.amax(-1, keepdim=True)
    exponentials = torch.exp(scores - largest)
    total = exponentials.sum(-1, keepdim=True)
    weights = _with_dropout((exponentials / total).to(query.dtype), dropout)
    output = torch.matmul(weights, _repeat_heads(value, heads))
    return output, (torch.log(total) + largest).squeeze(-1)


def _backward(
    gradient: Any, query: Any, key: Any, value: Any, output: Any, logsumexp: Any, bias: Any, dropout: float,
    is_causal: bool, scale: float | None,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Gradients of query, key, value and scores (Dao et al., FlashAttention-2, section 2.3.2)."""
    heads, kept_heads, dtype = query.shape[1], key.shape[1], query.dtype
    keys, values = _repeat_heads(key, heads), _repeat_heads(value, heads)
    weights = torch.exp(_scores(query, keys, bias, is_causal, scale) - logsumexp.unsqueeze(-1))
    share = _with_dropout(torch.ones_like(weights), dropout)
    value_gradient = torch.matmul((weights * share).to(dtype).transpose(-2, -1), gradient)
    weight_gradient = torch.matmul(gradient, values.transpose(-2, -1)).float()
    rowsum = (gradient * output).float().sum(-1, keepdim=True)
    score_gradient = weights * (weight_gradient * share - rowsum)
    scaled = (score_gradient * _scale(query, scale)).to(dtype)
    query_gradient = torch.matmul(scaled, keys)
    key_gradient = torch.matmul(scaled.transpose(-2, -1), query)
    return (
        query_gradient,
        _sum_groups(key_gradient, kept_heads),
        _sum_groups(value_gradient, kept_heads),
        score_gradient,
    )


@decomposes(_aten._scaled_dot_product_flash_attention_for_cpu.default)
def _flash_forward(
    query: Any, key: Any, value: Any, dropout_p: float = 0.0, is_causal: bool = False, *,
    attn_mask: Any = None, scale: float | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    return _forward(query, key, value, attn_mask, dropout_p, is_causal, scale)


@decomposes_refused(_aten._scaled_dot_product_flash_attention_for_cpu_backward.default)
def _flash_backward(
    grad_out: Any, query: Any, key: Any, value: Any, out: Any, logsumexp: Any, dropout_p: float,
    is_causal: bool, *, attn_mask: Any = None, scale: float | None = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    return _backward(grad_out, query, key, value, out, logsumexp, attn_mask, dropout_p, is_causal, scale)[:3]


@decomposes(_aten._scaled_dot_product_fused_attention_overrideable.default)
def _fused_forward(
    query: Any, key: Any, value: Any, attn_bias: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    return_debug_mask: bool = False, *, scale: float | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    output, logsumexp = _forward(query, key, value, attn_bias, dropout_p, is_causal, scale)
    return output, logsumexp, None, None, query.shape[2], key.shape[2], None, None, None


@decomposes_refused(_aten._scaled_dot_product_fused_attention_overrideable_backward.default)
def _fused_backward(
    grad_out: Any, query: Any, key: Any, value: Any, attn_bias: Any, grad_input_mask: list[bool], out: Any,
    logsumexp: Any, cum_seq_q: Any, cum_seq_k: Any, max_q: int, max_k: int, dropout_p: float, is_causal: bool,
    philox_seed: Any, philox_offset: Any, *, scale: float | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    bias = attn_bias if attn_bias is not None and attn_bias.numel() else None
    results = _backward(grad_out, query, key, value, out, logsumexp, bias, dropout_p, is_causal, scale)
    return tuple(result if wanted else None for result, wanted in zip(results, grad_input_mask))


def _attention_gradient(node: fx.Node) -> Intrinsic | None:
    """One operation, where heads are no larger than the Tensor engine and no gradient of a bias is wanted."""
    schema = node.target._schema
    given = {argument.name: value for argument, value in zip(schema.arguments, node.args)} | dict(node.kwargs)
    names = ("grad_out", "query", "key", "value", "out", "logsumexp")
    bias = given.get("attn_bias", given.get("attn_mask"))
    found = [*(given[name] for name in names), bias]
    if given.get("grad_input_mask", [True, True, True, False])[3:] != [False] or not _fits(found):
        return None
    places = {each: place for place, each in enumerate(node.all_input_nodes)}
    operands = tuple(places.get(each, -1) for each in found)
    assert len(operands) == len(ATTENTION_OPERANDS)
    how = {"is_causal": bool(given["is_causal"]), "dropout": float(given["dropout_p"])}
    return Intrinsic(ATTENTION_GRADIENT, {"operands": operands, **how, "parts": ()})


def _fits(operands: list[fx.Node | None]) -> bool:
    """Whether shapes and types are those that the operation takes."""
    given = [operand for operand in operands if operand is not None]
    query, key, value, logarithms = (given[place].meta["val"] for place in (1, 2, 3, 5))
    return bool(
        query.dim() == key.dim() == 4
        and logarithms.dim() == 3
        and max(query.shape[-1], value.shape[-1]) <= _LARGEST_HEAD
        and query.shape[1] % key.shape[1] == 0
        and query.dtype in (torch.float32, torch.bfloat16, torch.float16)
        and (operands[-1] is None or operands[-1].meta["val"].dim() == 4)
    )


for _overload in (
    _aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
    _aten._scaled_dot_product_fused_attention_overrideable_backward.default,
):
    becomes(operator_name(_overload), _attention_gradient)
