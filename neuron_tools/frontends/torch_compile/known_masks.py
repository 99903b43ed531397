"""Masks of attention that are known when a graph is compiled, as they follow from shapes alone.

Libraries cannot look at values while Dynamo traces them, so they make a mask where eager code would ask for
causal attention (`masking_utils` of transformers). Such a mask is computed here, once: attention behind one
that hides the future, or nothing, does without it, forward and backward.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import fx

from neuron_tools.frontends.torch_lowering.clean_thread import run_clean

MOST_ELEMENTS = 1 << 27
"""Of a tensor that is computed on the way: some seconds and a few GB on the host."""
_aten = torch.ops.aten
_PLACES = {
    _aten._scaled_dot_product_fused_attention_overrideable.default: (3, 5),
    _aten._scaled_dot_product_fused_attention_overrideable_backward.default: (4, 13),
}
"""Attention and its gradient -> places of the mask and of `is_causal` among the arguments."""


def fold_known_masks(gm: fx.GraphModule) -> None:
    """Let attention do without its mask where that is known and hides the future, or nothing.

    Args:
        gm: A graph of `aten` operators, forward and backward together or one of them; changed in place.
    """
    known = _known(gm.graph)
    found: dict[fx.Node, bool | None] = {}
    for node in list(gm.graph.nodes):
        if node.target not in _PLACES:
            continue
        mask = _argument(node, "attn_bias", 0)
        if mask not in known or _argument(node, "is_causal", 1):
            continue
        if mask not in found:
            found[mask] = _is_causal(mask, node)
        if found[mask] is not None:
            _set_argument(node, "attn_bias", 0, None)
            _set_argument(node, "is_causal", 1, found[mask])
    if any(is_causal is not None for is_causal in found.values()):
        _drop_unused(gm, known)


def _known(graph: fx.Graph) -> set[Any]:
    """Nodes whose values follow from the graph alone."""
    known: set[Any] = set()
    for node in graph.nodes:
        if _is_computable(node) and known.issuperset(node.all_input_nodes):
            known.add(node)
    return known


def _is_computable(node: fx.Node) -> bool:
    if node.target is operator.getitem:
        return True
    if not isinstance(node.target, torch._ops.OpOverload) or node.target._schema.is_mutable:
        return False
    value = node.meta.get("val")
    if torch.Tag.nondeterministic_seeded in node.target.tags or not isinstance(value, torch.Tensor):
        return False
    return all(isinstance(size, int) for size in value.shape) and value.numel() <= MOST_ELEMENTS


def _is_causal(mask: fx.Node, attention: fx.Node) -> bool | None:
    """Whether a mask hides the future, where it hides that and nothing else, or nothing at all; else None."""
    query, key = (node.meta["val"].shape[-2] for node in _query_and_key(attention))
    if tuple(mask.meta["val"].shape[-2:]) != (query, key):
        return None
    with suppress(Exception):  # an operator that the host does not have leaves the mask as it is
        return run_clean(_verdict, mask)
    return None


def _query_and_key(attention: fx.Node) -> tuple[fx.Node, fx.Node]:
    first = 0 if _PLACES[attention.target][0] == 3 else 1
    query, key = attention.args[first : first + 2]
    return query, key


def _verdict(node: fx.Node) -> bool | None:
    mask = _value(node)
    is_seen = mask if mask.dtype == torch.bool else mask == 0
    if mask.dtype != torch.bool and not (is_seen | (mask <= torch.finfo(mask.dtype).min)).all():
        return None
    if is_seen.all():
        return False
    past = torch.ones(mask.shape[-2:], dtype=torch.bool).tril()
    return True if (is_seen == past).all() else None


def _value(wanted: fx.Node) -> torch.Tensor:
    """What a known node computes, on the host."""
    needed = list(_needed(wanted))
    last_use = {used: node for node in needed for used in node.all_input_nodes}
    values: dict[fx.Node, Any] = {}
    for node in needed:
        args = fx.map_arg(node.args, values.__getitem__)
        kwargs = fx.map_arg(node.kwargs, values.__getitem__)
        values[node] = node.target(*_on_host(args), **_on_host(kwargs))
        for used in node.all_input_nodes:
            if last_use[used] is node:
                del values[used]
    return values[wanted]


def _needed(wanted: fx.Node) -> Iterator[fx.Node]:
    """A node and all that it depends on, in the order of the graph."""
    pending, needed = [wanted], set()
    while pending:
        node = pending.pop()
        if node not in needed:
            needed.add(node)
            pending += node.all_input_nodes
    return (node for node in wanted.graph.nodes if node in needed)


def _on_host(arguments: Any) -> Any:
    return fx.node.map_aggregate(
        arguments, lambda each: torch.device("cpu") if isinstance(each, torch.device) else each
    )


def _argument(node: fx.Node, name: str, which: int) -> Any:
    place = _PLACES[node.target][which]
    return node.args[place] if place < len(node.args) else node.kwargs.get(name)


def _set_argument(node: fx.Node, name: str, which: int, value: Any) -> None:
    place = _PLACES[node.target][which]
    if place < len(node.args):
        node.update_arg(place, value)
    else:
        node.update_kwarg(name, value)


def _drop_unused(gm: fx.GraphModule, known: set[Any]) -> None:
    for node in reversed(list(gm.graph.nodes)):
        if node in known and not node.users:
            gm.graph.erase_node(node)
    gm.recompile()
