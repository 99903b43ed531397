"""FlexAttention in a graph: the device's attention operator where a mask is all, else products and a softmax.

The operator runs as one group on the chip, its scores never in HBM. A function of the scores can be
anything, so attention with one is taken apart as PyTorch's own code for any device does it.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import torch
from torch import fx

OPERATORS = "torch._higher_order_ops.flex_attention"
_aten = torch.ops.aten


def forward(
    query: Any, key: Any, value: Any, score_mod: Any, block_mask: Any, scale: float, kernel_options: Any,
    score_mod_other_buffers: Any = (), mask_mod_other_buffers: Any = (),
) -> tuple[Any, Any, Any]:  # fmt: skip
    """What `flex_attention` computes: output, logs of the rows' sums of exponentials, largest scores; base 2.

    Args:
        query, key, value: (batch, heads, rows, size); key and value may have fewer heads, or one batch.
        score_mod: A function of a score and its place.
        block_mask: Its last member is the function that says what is seen.
        scale: Factor on the scores.
        kernel_options: Of kernels for other devices.
        score_mod_other_buffers, mask_mod_other_buffers: Tensors that the functions capture.
    """
    operators = import_module(OPERATORS)
    dense = operators.sdpa_dense(
        query, key, value, score_mod, block_mask, scale, kernel_options, score_mod_other_buffers,
        mask_mod_other_buffers,
    )  # fmt: skip
    if not _is_masked_attention(query, value, score_mod):
        return tuple(dense)
    mask = _mask(query, key, block_mask[-1], mask_mod_other_buffers)
    output, logsumexp, *_ = _aten._scaled_dot_product_fused_attention_overrideable(
        query, _per_query_head(key, query), _per_query_head(value, query), mask, scale=scale
    )
    output = operators._permute_strides(output, query.stride())
    logsumexp = torch.where(
        mask.any(-1), logsumexp, -math.inf
    )  # the operator says 0 of a row that sees nothing
    return output, logsumexp / math.log(2), dense[2]  # of what is not read nothing is left in the graph


def backward(
    query: Any, key: Any, value: Any, out: Any, logsumexp: Any, grad_out: Any, grad_logsumexp: Any,
    fw_graph: Any, joint_graph: Any, block_mask: Any, scale: float, kernel_options: Any,
    score_mod_other_buffers: Any, mask_mod_other_buffers: Any,
) -> tuple[Any, Any, Any, tuple[Any, ...]]:  # fmt: skip
    """Gradients of query, key, value and what the function of the scores captured; see `forward`."""
    operators = import_module(OPERATORS)
    is_operator = _is_masked_attention(query, value, fw_graph) and len(query) == len(key)
    if not is_operator or grad_out is None or grad_logsumexp is not None:
        gradients = operators.sdpa_dense_backward(
            query, key, value, out, logsumexp, grad_out, grad_logsumexp, fw_graph, joint_graph, block_mask,
            scale, kernel_options, score_mod_other_buffers, mask_mod_other_buffers,
        )  # fmt: skip
        return tuple(gradients)
    mask = _mask(query, key, block_mask[-1], mask_mod_other_buffers)
    rows, columns = query.shape[2], key.shape[2]
    logsumexp = torch.where(logsumexp == -math.inf, 0.0, logsumexp * math.log(2))
    of_query, of_keys, of_values, _ = _aten._scaled_dot_product_fused_attention_overrideable_backward(
        grad_out, query, _per_query_head(key, query), _per_query_head(value, query), mask,
        [True, True, True, False], out, logsumexp, None, None, rows, columns, 0.0, False,
        query.new_empty(0, dtype=torch.long), query.new_empty(0, dtype=torch.long), scale=scale,
    )  # fmt: skip
    gradients = (of_query, _sum_groups(of_keys, key), _sum_groups(of_values, value))
    placed = (
        operators._permute_strides(gradient, tensor.stride())
        for gradient, tensor in zip(gradients, (query, key, value), strict=True)
    )
    return (*placed, tuple(None for _ in score_mod_other_buffers))


def _is_masked_attention(query: Any, value: Any, score_mod: Any) -> bool:
    """Whether the device's operator does the same: no function of the scores, and what its kernel takes."""
    same_width = query.shape[-1] == value.shape[-1] and bool(query.numel() and value.numel())
    return same_width and query.dtype != torch.float64 and _is_identity(score_mod)


def _is_identity(score_mod: Any) -> bool:
    """Whether a traced function gives back its first argument."""
    if not isinstance(score_mod, fx.GraphModule):
        return False
    nodes = list(score_mod.graph.nodes)
    (result,) = (node for node in nodes if node.op == "output")
    given = result.args[0]
    (given,) = given if isinstance(given, (tuple, list)) and len(given) == 1 else (given,)
    return given is nodes[0]


def _mask(query: Any, key: Any, mask_mod: Any, buffers: Any) -> Any:
    """(batch, heads, rows, columns) or broadcast to it: True where a column is seen."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
    from torch.nn.attention.flex_attention import _vmap_for_bhqkv

    sizes = (*query.shape[:3], key.shape[2])
    places = [torch.arange(0, size, device=query.device) for size in sizes]
    function = _vmap_for_bhqkv(mask_mod, prefix=(), suffix=(None,) * len(buffers))
    with TransformGetItemToIndex():
        return function(*places, *buffers)


def _per_query_head(tensor: Any, query: Any) -> Any:
    """Keys or values for each head of the queries, and each batch."""
    groups = query.shape[1] // tensor.shape[1]
    repeated = tensor if groups == 1 else torch.repeat_interleave(tensor, groups, dim=1)
    return repeated.expand(query.shape[0], *repeated.shape[1:])


def _sum_groups(gradient: Any, tensor: Any) -> Any:
    """The gradient of keys or values, of the query heads that shared them."""
    batch, heads, *rest = tensor.shape
    if gradient.shape[1] == heads:
        return gradient
    return gradient.reshape(batch, heads, gradient.shape[1] // heads, *rest).sum(2)
