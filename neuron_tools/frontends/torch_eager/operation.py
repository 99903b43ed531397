"""Lowers one operator signature: the device asks once per new signature, the answer is cached above."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from neuron_tools.compiler.hlo import Module
from neuron_tools.frontends.torch_eager.arguments import Call, read_call
from neuron_tools.frontends.torch_eager.canonical import canonical_arguments
from neuron_tools.frontends.torch_eager.schema import writes_several_lists
from neuron_tools.frontends.torch_lowering.builder import GraphBuilder
from neuron_tools.frontends.torch_lowering.clean_thread import run_clean
from neuron_tools.frontends.torch_lowering.lowering import lower
from neuron_tools.records.program import FrameworkOperation

_aten = torch.ops.aten
_STORED_BY_TOKENS = (_aten._scaled_dot_product_fused_attention_overrideable_backward.default,)
"""Operators whose results leave the heads of a token side by side in memory (`attention_kernels.cpp`)."""
_GRADIENTS = 3
"""Of queries, keys and values: that of a bias, which the device does not compute, is not among them."""


def lower_operation(name: str, arguments: tuple[Any, ...]) -> Module:
    """Lower one operator as the device's core describes it.

    Args:
        name: Qualified operator name with its overload, e.g. "aten::add.Tensor".
        arguments: One entry per schema argument, as the `arguments` module beside this one reads them.

    Returns:
        A module with one framework row, the same for all signatures of one `signature_key`. What cannot be
        lowered is a `custom_call`, named in `warnings`.
    """
    return run_clean(_lower, name, arguments)


def _lower(name: str, arguments: tuple[Any, ...]) -> Module:
    call = read_call(name, canonical_arguments(arguments))

    def build(builder: GraphBuilder) -> list[fx.Node]:
        made = _add(builder, call)
        if call.target in _STORED_BY_TOKENS:
            made = [_by_tokens(builder, gradient) for gradient in made[:_GRADIENTS]]
        nodes = [leaf for leaf in pytree.tree_leaves(made) if isinstance(leaf, fx.Node)]
        results = dict.fromkeys([*nodes, *builder.written])
        return [node for node in results if node.meta["val"].numel()]

    return lower(build, (FrameworkOperation(name=name.split(".")[0]),), name)


def _by_tokens(builder: GraphBuilder, gradient: Any) -> Any:
    """A gradient (batch, heads, tokens, head size) as it lies in memory; None where it is not wanted."""
    if not isinstance(gradient, fx.Node):
        return gradient
    return builder.call(_aten.transpose.int, (gradient, 1, 2), {}, row=0)


def _add(builder: GraphBuilder, call: Call) -> Any:
    leaves, structure = pytree.tree_flatten((call.args, call.kwargs))
    nodes = [call.place(builder, leaf) for leaf in leaves]
    args, kwargs = pytree.tree_unflatten(nodes, structure)
    result = builder.call(call.target, args, kwargs, row=0)
    if not writes_several_lists(call.target):
        for position, new in zip(call.written_leaves, builder.written):
            builder.take_over(new, nodes[position])
    return result
