"""`mark_sharding`: says how a tensor lies over the cores, be it there already or a result of the graph."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from neuron_tools.frontends.torch_lowering.intrinsics import Intrinsic, becomes
from neuron_tools.frontends.torch_lowering.rejoined import MANUAL, MARK, SHARDING
from neuron_tools.frontends.torch_xla.errors import XlaError
from neuron_tools.frontends.torch_xla.execution import current_graph
from neuron_tools.frontends.torch_xla.graph import ValueNumber
from neuron_tools.frontends.torch_xla.origin import current_origin
from neuron_tools.frontends.torch_xla.sharding import Sharding
from neuron_tools.frontends.torch_xla.spread import is_spread
from neuron_tools.frontends.torch_xla.tensor import LazyValue, XlaTensor

_groups = itertools.count(1)
_NAME = "neuron_xla::mark_sharding"


def mark(tensor: XlaTensor, sharding: Sharding) -> None:
    """Let a tensor lie over the cores so from here on.

    Args:
        tensor: One that was moved to the device is copied to the cores anew when a graph needs it; a result
            of the graph is so for what is made of it from here on.
        sharding: How.

    Raises:
        XlaError: It is each core's own part.
    """
    refuse_part(tensor)
    graph, before = current_graph(), tensor.lazy
    if not is_spread():
        before.sharding = sharding
        return
    if before.graph != graph.serial or before.number in {value.number for value in graph.inputs}:
        before.sharding, before.parts = sharding, None
        return
    move(tensor, sharding)


def move(tensor: XlaTensor, sharding: Sharding) -> None:
    """Let the graph move a tensor's parts, for what is made of it from here on.

    Args:
        tensor: One that lies over the cores in another way, or a result of the graph.
        sharding: How it lies then.
    """
    tensor.lazy = marked(tensor, sharding.text)
    tensor.lazy.sharding = sharding


def place(tensor: XlaTensor, sharding: Sharding) -> None:
    """Let a tensor lie over the cores so from here on, in whatever way it lay.

    Raises:
        XlaError: It is each core's own part.
    """
    refuse_part(tensor)
    (move if is_spread() else mark)(tensor, sharding)


def alike(one: Any, other: Any) -> tuple[Any, Any]:
    """Two tensors that lie in the same way, whichever the partitioner chooses; other values as they are.

    Raises:
        XlaError: They have different shapes, or one is each core's own part.
    """
    if not (isinstance(one, XlaTensor) and isinstance(other, XlaTensor)):
        return one, other
    if one.shape != other.shape:
        raise XlaError(
            f"Tensors of the shapes {list(one.shape)} and {list(other.shape)} cannot lie alike: give two of "
            "one shape."
        )
    refuse_part(one)
    refuse_part(other)
    if not is_spread():
        return one, other
    pair: tuple[torch.Tensor, torch.Tensor] = _Alike.apply(one, other)
    return pair


class _Alike(torch.autograd.Function):
    """Gradients pass as they are."""

    @staticmethod
    def forward(ctx: Any, one: XlaTensor, other: XlaTensor) -> tuple[XlaTensor, XlaTensor]:
        group = f"{{unknown shard_as {next(_groups)}}}"
        return XlaTensor(marked(one, group), one.dtype), XlaTensor(marked(other, group), other.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return gradients


def refuse_part(tensor: XlaTensor) -> None:
    """Only the whole tensor can be said to lie in some way.

    Raises:
        XlaError: The tensor is each core's own part.
    """
    if tensor.lazy.by_core is not None:
        raise XlaError("The tensor is each core's own part already: call disable_manual_sharding first.")


def sharding_text(value: LazyValue) -> str:
    """How a value lies, in XLA's text; "" where nobody has said so."""
    if value.by_core is not None:
        return MANUAL
    return value.sharding.text if value.sharding else ""


def marked(tensor: XlaTensor, sharding: str) -> LazyValue:
    """A tensor's value behind a mark of the graph that says how it lies, in XLA's text."""
    graph, before = current_graph(), tensor.lazy
    number = graph.number_of(before, tensor)
    leaves, structure = pytree.tree_flatten(((ValueNumber(number), sharding), {}))
    after = before.renamed()
    graph.add(_operator(), leaves, structure, [after], current_origin())
    return after


@cache
def _operator() -> Any:
    """The operator, defined on first use."""
    torch.library.define(_NAME, "(Tensor input, str sharding) -> Tensor")
    torch.library.register_fake(_NAME, lambda input, sharding: torch.empty_like(input))
    torch.library.impl(_NAME, "default", lambda input, sharding: input.clone())
    becomes(_NAME, _lowered)
    return torch.ops.neuron_xla.mark_sharding.default


def _lowered(node: fx.Node) -> Intrinsic:
    return Intrinsic("custom_call", {"call_target_name": MARK, SHARDING: node.args[1]})
