"""Builds the graph that goes to torch-mlir: calls are expanded to operators it knows, each with its row."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from neuron_tools.frontends.torch_lowering import multi_tensor
from neuron_tools.frontends.torch_lowering.combining_scatter import as_sum
from neuron_tools.frontends.torch_lowering.crashes import survivable_form
from neuron_tools.frontends.torch_lowering.decompositions import replacement_of
from neuron_tools.frontends.torch_lowering.expansion import Expansion, expand
from neuron_tools.frontends.torch_lowering.fake import refake
from neuron_tools.frontends.torch_lowering.intrinsics import Intrinsic, intrinsic_of, operator_name, unlowered
from neuron_tools.frontends.torch_lowering.pairs import COMPLEX, is_complex, stored, value_of
from neuron_tools.frontends.torch_lowering.verdicts import UNTRIED, VERDICTS


class GraphBuilder:
    """Collects parameters and calls; `graph` has no output node until lowering cuts it.

    Attributes:
        graph: Nodes with `meta["val"]` (fake tensors), `meta["row"]` and, for nodes that torch-mlir must not
            see, `meta["intrinsic"]`.
        parameters: The placeholders, in order.
        kinds: "input" or "weight" per parameter.
        written: New values of arguments that calls wrote, in order.
        homes: New value of a parameter -> the parameter, whose memory it takes over.

    Args:
        foreign: For a compiler that is not ours: what it knows of calls that torch-mlir must not see. Then
            torch-mlir spells out the activation functions that the chip has in one instruction.
    """

    def __init__(self, foreign: Callable[[fx.Node], Intrinsic | None] | None = None) -> None:
        self._intrinsic_of = foreign or intrinsic_of
        self._is_foreign = foreign is not None
        self.graph = fx.Graph()
        self.parameters: list[fx.Node] = []
        self.kinds: list[str] = []
        self.written: list[fx.Node] = []
        self.homes: dict[fx.Node, fx.Node] = {}

    def parameter(self, value: torch.Tensor, name: str = "argument", kind: str = "input") -> fx.Node:
        """Add a parameter of the fake tensor's shape and type; `kind` is "input" or "weight"."""
        node = self.graph.placeholder(name)
        node.meta = {"val": stored(value), COMPLEX: is_complex(value)}
        self.parameters.append(node)
        self.kinds.append(kind)
        return node

    def call(
        self,
        target: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        row: int,
        expected: Any = None,
    ) -> Any:
        """Add a call; returns its result as a structure of nodes and constants.

        Args:
            target: Operator overload, or a Python function of tensors.
            args: Arguments: nodes of this graph, constants, lists of both.
            kwargs: Likewise, by name.
            row: Framework row to charge.
            expected: The result as (fake) tensors, used where it cannot be found out without values.
        """
        each = multi_tensor.per_tensor_calls(target)
        if each is not None:
            return each(self, row, args, kwargs)
        leaves, structure = pytree.tree_flatten((tuple(args), dict(kwargs)))
        values = [_value(leaf) for leaf in leaves]
        nodes = [leaf for leaf in leaves if isinstance(leaf, fx.Node)]
        try:
            expansion = expand(target, values, structure)
        except Exception as error:  # tracing runs PyTorch's own Python code: anything may be raised
            return self._opaque(target, nodes, values, expected, row, f"{type(error).__name__} while tracing")
        return self._inline(expansion, nodes, row)

    def take_over(self, node: Any, argument: Any) -> None:
        """Let `node`, the new value of an argument, have its memory where the argument is a parameter."""
        if argument in self.parameters and node is not argument:
            self.homes[node] = argument

    def copy(self, node: fx.Node, row: int) -> fx.Node:
        """A value in memory of its own, moved there by the framework operation `row`."""
        copied = self.graph.call_function(torch.ops.aten.clone.default, (node,))
        copied.meta = {"val": node.meta["val"], "row": row, COMPLEX: node.meta.get(COMPLEX)}
        if not self._is_foreign:
            copied.meta["intrinsic"] = Intrinsic("copy")
        return copied

    def write(self, node: fx.Node) -> None:
        """Remember that `node` is the new value of an argument."""
        self.written.append(node)

    def _inline(self, expansion: Expansion, nodes: list[fx.Node], row: int) -> Any:
        copies: dict[fx.Node, Any] = {}
        arguments = iter(nodes)
        for node in expansion.graph.nodes:
            if node.op == "placeholder":
                copies[node] = next(arguments)
            elif node.op == "get_attr":
                copies[node] = self._constant(node, row)
            else:
                copies[node] = self._copy(node, copies, row)
        for node in expansion.pairs:
            copies[node].meta[COMPLEX] = True
        self.written += [copies[node] for node in expansion.written]
        return pytree.tree_map(
            lambda leaf: copies[leaf] if isinstance(leaf, fx.Node) else leaf, expansion.result
        )

    def _copy(self, node: fx.Node, copies: dict[fx.Node, Any], row: int) -> Any:
        """The node in this graph, or what it was decomposed to because it failed before."""
        if node.target is operator.getitem and not isinstance(copies[node.args[0]], fx.Node):
            return copies[node.args[0]][node.args[1]]
        if isinstance(node.target, type):  # the named tuple that some of PyTorch's decompositions return
            return pytree.tree_leaves(fx.node.map_arg(node.args, copies.__getitem__))
        copy = self.graph.node_copy(node, copies.__getitem__)
        copy.meta = {"val": node.meta.get("val"), "row": row}
        as_sum(copy)
        values = [leaf.meta["val"] if isinstance(leaf, fx.Node) else leaf for leaf in copy.args]
        survivable = survivable_form(copy.target, values)
        if survivable is not None:
            return self._taken_apart(copy, survivable)
        replacement = replacement_of(copy.target)
        if replacement is not None:
            return self._taken_apart(copy, replacement)
        verdict = self._intrinsic_of(copy) or VERDICTS.of(copy)
        if isinstance(verdict, Intrinsic):
            copy.meta["intrinsic"] = verdict
        elif verdict is not None:
            return self._taken_apart(copy, verdict)
        else:
            copy.meta[UNTRIED] = True
        return copy

    def _taken_apart(self, node: fx.Node, decomposition: Callable[..., Any]) -> Any:
        args, kwargs, row, value = node.args, dict(node.kwargs), node.meta["row"], node.meta["val"]
        self.graph.erase_node(node)
        return self.call(decomposition, args, kwargs, row, value)

    def _constant(self, node: fx.Node, row: int) -> Any:
        return self.constant(getattr(node.graph.owning_module, str(node.target)), str(node.target), row)

    def constant(self, value: Any, name: str, row: int) -> Any:
        """A tensor that the graph itself holds: one number is written into it, more become a parameter.

        Args:
            value: Real or fake tensor; the values of a large one do not matter for time.
            name: What to call the parameter.
            row: Framework row.
        """
        if value.numel() != 1 or isinstance(value, FakeTensor) or value.device.type == "meta":
            return self.parameter(refake(value), name, "weight")
        return self.call(torch.full, (list(value.shape), value.item()), {"dtype": value.dtype}, row)

    def _opaque(
        self,
        target: Callable[..., Any],
        nodes: list[fx.Node],
        values: list[Any],
        expected: Any,
        row: int,
        reason: str,
    ) -> Any:
        result = refake(expected) if expected is not None else _guess_result(values)
        name = operator_name(target)
        scalars = [repr(value) for value in values if not isinstance(value, torch.Tensor)]
        call = self.graph.call_function(target, tuple(nodes))
        call.meta = {
            "row": row,
            "val": result,
            "intrinsic": unlowered(name, reason, {"scalars": tuple(scalars)}),
        }
        return split_results(self.graph, call)


def split_results(graph: fx.Graph, call: fx.Node) -> Any:
    """One node per tensor of a call's result, in the result's structure."""
    value = call.meta["val"]
    if isinstance(value, torch.Tensor):
        call.meta |= {"val": stored(value), COMPLEX: is_complex(value)}
        return call
    leaves, structure = pytree.tree_flatten(value)
    call.meta["val"] = [stored(leaf) for leaf in leaves]
    items: list[Any] = []
    for index, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor):
            item = graph.call_function(operator.getitem, (call, index))
            item.meta = {"val": stored(leaf), COMPLEX: is_complex(leaf), "row": call.meta["row"]}
            items.append(item)
        else:
            items.append(leaf)
    return pytree.tree_unflatten(items, structure)


def _value(leaf: Any) -> Any:
    if isinstance(leaf, fx.Node):
        return value_of(leaf)
    return torch.device("cpu") if isinstance(leaf, torch.device) else leaf


def _guess_result(values: list[Any]) -> Any:
    """Without any knowledge: a result like the first tensor argument."""
    return next((refake(value) for value in values if isinstance(value, torch.Tensor)), ())
