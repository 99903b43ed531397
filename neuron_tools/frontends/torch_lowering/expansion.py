"""What one operator becomes: a small graph of operators that torch-mlir knows, traced once per signature."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from neuron_tools.frontends.torch_lowering.crashes import survivable_form
from neuron_tools.frontends.torch_lowering.decompositions import decomposition_table, replacement_of
from neuron_tools.frontends.torch_lowering.decompositions.complex_numbers import Pairs
from neuron_tools.frontends.torch_lowering.fake import FAKE_MODE, fake_tensor, signature
from neuron_tools.frontends.torch_lowering.pairs import call_on_pairs, functional_form, is_complex, stored
from neuron_tools.frontends.torch_lowering.tracing import trace
from neuron_tools.frozen import frozen


@frozen
class Expansion:
    """A traced operator.

    Attributes:
        graph: One placeholder per tensor argument (flattened order); functional ATen calls.
        result: The operator's result: a structure of graph nodes and constants.
        written: Nodes holding the new values of the arguments that the operator writes.
        pairs: Results that are complex, as pairs.
    """

    graph: fx.Graph
    result: Any
    written: tuple[fx.Node, ...] = ()
    pairs: tuple[fx.Node, ...] = ()


_EXPANSIONS: dict[Any, Expansion] = {}


def expand(target: Callable[..., Any], leaves: list[Any], structure: pytree.TreeSpec) -> Expansion:
    """The expansion of `target` called with the flattened `(args, kwargs)`; cached by signature.

    Args:
        target: An operator overload or a Python function of tensors.
        leaves: Flattened arguments, tensors fake.
        structure: How to unflatten them.

    Raises:
        Exception: Whatever tracing raises where the operator cannot be traced without values.
    """
    key = (target, structure, tuple(map(signature, leaves)), torch.get_default_dtype())
    expansion = _EXPANSIONS.get(key)
    if expansion is None:
        dense = [_dense(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        _EXPANSIONS[key] = expansion = _expand(target, dense, structure)
    return expansion


def _expand(target: Callable[..., Any], leaves: list[Any], structure: pytree.TreeSpec) -> Expansion:
    target = replacement_of(target) or target
    if any(map(is_complex, leaves)):
        return _in_pairs(target, leaves, structure)
    if not is_mutable(target):
        target = survivable_form(target, leaves) or target
    if is_direct(target):
        expansion = _single(target, leaves, structure)
    else:
        graph = _trace(target, leaves, structure, functional=is_mutable(target))
        if any(is_mutable(node.target) for node in graph.nodes if node.op == "call_function"):
            graph = _retraced(graph, [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)])
        expansion = _finish(graph)
    makes_complex = any(is_complex(node.meta.get("val")) for node in expansion.graph.nodes)
    return _in_pairs(target, leaves, structure) if makes_complex else expansion


def _in_pairs(target: Any, leaves: list[Any], structure: pytree.TreeSpec) -> Expansion:
    """The expansion of a call that has to do with complex numbers."""
    writes = is_mutable(target)
    call = functional_form(target) if writes else target
    positions = [index for index, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    found: list[bool] = []

    def run(*tensors: Any) -> Any:
        filled = list(leaves)
        for position, tensor in zip(positions, tensors):
            filled[position] = Pairs(tensor) if is_complex(leaves[position]) else tensor
        args, kwargs = pytree.tree_unflatten(filled, structure)
        kwargs = {name: value for name, value in kwargs.items() if name != "out"}
        made, made_structure = pytree.tree_flatten(call_on_pairs(call, args, kwargs))
        found[:] = [isinstance(value, Pairs) for value in made]
        plain = [value.tensor if isinstance(value, Pairs) else value for value in made]
        plain = [value.clone() if any(value is one for one in tensors) else value for value in plain]
        result = pytree.tree_unflatten(plain, made_structure)
        return result, (result,) if writes else ()

    tensors = [stored(leaves[position]) for position in positions]
    with FAKE_MODE, torch.no_grad():
        expansion = _finish(_without_write_back(trace(run, tensors, decomposition_table())))
    results = pytree.tree_leaves(expansion.result)
    return replace(expansion, pairs=tuple(node for node, is_pair in zip(results, found) if is_pair))


def is_mutable(target: Any) -> bool:
    """Whether an operator writes one of its arguments."""
    return isinstance(target, torch._ops.OpOverload) and bool(target._schema.is_mutable)


@functools.cache
def is_direct(target: Any) -> bool:
    """Whether an operator goes to torch-mlir as it is."""
    if not isinstance(target, torch._ops.OpOverload) or target in decomposition_table():
        return False
    implicit = torch._C._dispatch_has_kernel_for_dispatch_key(target.name(), "CompositeImplicitAutograd")
    returns_list = any("[]" in str(value.type) for value in target._schema.returns)
    return not (implicit or target._schema.is_mutable or returns_list)


def _single(target: Any, leaves: list[Any], structure: pytree.TreeSpec) -> Expansion:
    graph = fx.Graph()
    nodes = [_placeholder(graph, leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    args, kwargs = pytree.tree_unflatten(nodes, structure)
    call = graph.call_function(target, tuple(args), kwargs)
    call_args, call_kwargs = pytree.tree_unflatten(leaves, structure)
    with FAKE_MODE, torch.no_grad():
        call.meta["val"] = target(*call_args, **call_kwargs)
    return Expansion(graph, _results(graph, call))


def _placeholder(graph: fx.Graph, value: Any) -> fx.Node:
    node = graph.placeholder("argument")
    node.meta["val"] = value
    return node


def _results(graph: fx.Graph, call: fx.Node) -> Any:
    """The call itself, or one `getitem` node per result of a call with several."""
    value = call.meta["val"]
    if not isinstance(value, (tuple, list)):
        return call if isinstance(value, torch.Tensor) else None
    items = []
    for index, part in enumerate(value):
        item: Any = part
        if isinstance(part, torch.Tensor):
            item = graph.call_function(operator.getitem, (call, index))
            item.meta["val"] = part
        items.append(item)
    return tuple(items)


def _trace(
    target: Callable[..., Any], leaves: list[Any], structure: pytree.TreeSpec, functional: bool
) -> fx.Graph:
    positions = [index for index, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    written = _written_positions(target, leaves, structure)

    def run(*tensors: Any) -> Any:
        filled = list(leaves)
        for position, tensor in zip(positions, tensors):
            filled[position] = tensor
        args, kwargs = pytree.tree_unflatten(filled, structure)
        result = target(*args, **kwargs)
        return result, tuple(filled[position] for position in written)

    tensors = [leaves[position] for position in positions]
    traced = torch.func.functionalize(run, remove="mutations") if functional else run
    with FAKE_MODE, torch.no_grad():
        graph = trace(traced, tensors, decomposition_table())
    return _without_write_back(graph)


def _retraced(graph: fx.Graph, tensors: list[Any]) -> fx.Graph:
    """A traced graph without the writes that its decompositions made."""
    traced = torch.func.functionalize(graph.owning_module, remove="mutations")
    with FAKE_MODE, torch.no_grad():
        functional = trace(traced, tensors, decomposition_table())
    return _without_write_back(functional)


def _dense(tensor: Any) -> Any:
    """A row-major tensor of its own storage: HLO knows no strides, and arguments must not seem to overlap."""
    return fake_tensor(tensor.shape, None, tensor.dtype)


def _written_positions(target: Any, leaves: list[Any], structure: pytree.TreeSpec) -> list[int]:
    """Positions among the leaves of the tensors that `target`'s schema says it writes."""
    if not is_mutable(target):
        return []
    args, kwargs = pytree.tree_unflatten(list(range(len(leaves))), structure)
    positions: list[int] = []
    for index, argument in enumerate(target._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = (
                kwargs.get(argument.name)
                if argument.name in kwargs
                else args[index]
                if index < len(args)
                else None
            )
            positions += [leaf for leaf in pytree.tree_leaves(value) if leaf is not None]
    return [position for position in positions if isinstance(leaves[position], torch.Tensor)]


def _without_write_back(graph: fx.Graph) -> fx.Graph:
    """Drop the `copy_` into placeholders with which functionalisation ends: the new values are results."""
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and is_mutable(node.target) and not node.users:
            graph.erase_node(node)
    graph.eliminate_dead_code()
    return graph


def _finish(graph: fx.Graph) -> Expansion:
    output = next(node for node in reversed(graph.nodes) if node.op == "output")
    result, written = output.args[0]
    graph.erase_node(output)
    return Expansion(graph, result, tuple(written))
