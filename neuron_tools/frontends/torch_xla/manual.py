"""Work that each core does on its own part of a tensor: nothing is shared out or exchanged by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from neuron_tools.device import native
from neuron_tools.frontends.torch_lowering.intrinsics import Intrinsic, becomes
from neuron_tools.frontends.torch_lowering.rejoined import FULL_TO_SHARD, MANUAL, SHARD_TO_FULL, SHARDING
from neuron_tools.frontends.torch_xla import spread
from neuron_tools.frontends.torch_xla.errors import XlaError
from neuron_tools.frontends.torch_xla.execution import current_graph
from neuron_tools.frontends.torch_xla.graph import ValueNumber
from neuron_tools.frontends.torch_xla.marking import marked, move, refuse_part
from neuron_tools.frontends.torch_xla.origin import current_origin
from neuron_tools.frontends.torch_xla.sharding import WHOLE, Sharding
from neuron_tools.frontends.torch_xla.tensor import LazyValue, XlaTensor

_ENTERS, _LEAVES = "neuron_xla::full_to_shard", "neuron_xla::shard_to_full"


def enter(tensor: XlaTensor, sharding: Sharding) -> XlaTensor:
    """Each core's part of a tensor, for work by hand; behind what the cores do not divide stand zeros.

    Args:
        tensor: Whole or in parts.
        sharding: Which part each core takes.

    Raises:
        XlaError: It is a part already.
    """
    refuse_part(tensor)
    inner = tensor.lazy.inner
    shape = sharding.tile(inner.shape)
    with native.unrecorded(), spread.whole_values():
        parts = [_padded(inner[sharding.part(inner.shape, core)], shape) for core in _cores()]
    value = LazyValue.of_cores(parts)
    _record(_enters(), marked(tensor, sharding.text), (list(shape),), value)
    return XlaTensor(value, tensor.dtype)


def leave(tensor: XlaTensor, sharding: Sharding, shape: Sequence[int]) -> XlaTensor:
    """The tensor of which each core has a part; of parts that several cores have, the first one's counts.

    Args:
        tensor: Each core's part.
        sharding: Which part each core has.
        shape: The whole tensor's.

    Raises:
        XlaError: It is no part, or has the shape of none.
    """
    parts = tensor.lazy.by_core
    if parts is None:
        raise XlaError("The tensor is no core's own part: call enable_manual_sharding first.")
    if len(shape) != tensor.dim():
        raise XlaError(
            f"The parts have {tensor.dim()} dimensions, and {list(shape)} is the shape of a tensor with "
            f"{len(shape)}: give the shape of the whole tensor."
        )
    if tuple(tensor.shape) != sharding.tile(shape):
        raise XlaError(
            f"The parts have the shape {list(tensor.shape)}, and those of a tensor of {list(shape)} have "
            f"{list(sharding.tile(shape))}: give the shape of the whole tensor, and how it is cut."
        )
    with native.unrecorded(), spread.whole_values():
        whole = parts[0].new_empty(tuple(shape))
        for core in reversed(_cores()):
            place = whole[sharding.part(shape, core)]
            place.copy_(parts[core][tuple(slice(0, extent) for extent in place.shape)])
    value = LazyValue(whole)
    _record(_leaves(), marked(tensor, MANUAL), (list(shape), sharding.text), value)
    result = XlaTensor(value, tensor.dtype)
    move(result, sharding)  # XLA lays out a program's only result as it likes, which this call cannot be
    return result


def refuse_to_look(tensor: XlaTensor) -> None:
    """Only whole tensors have one value that can be looked at.

    Raises:
        XlaError: Each core has its own part.
    """
    if tensor.lazy.by_core is not None:
        raise XlaError("Each core has a value of its own: call disable_manual_sharding before looking at it.")


def brought_in(func: Any, leaves: Sequence[Any], structure: pytree.TreeSpec) -> list[Any]:
    """An operation's arguments, where it is one on each core's own part: what is whole is so on each core.

    Args:
        func: The operator.
        leaves: Its flattened `(args, kwargs)`.
        structure: How to unflatten them.

    Raises:
        XlaError: It writes a whole tensor.
    """
    if not any(isinstance(leaf, XlaTensor) and leaf.lazy.by_core is not None for leaf in leaves):
        return list(leaves)
    if any(_is_whole(tensor) for tensor in _written(func, *pytree.tree_unflatten(leaves, structure))):
        raise XlaError(
            f"{func.name()} would write each core's own part to a whole tensor: pass the parts to "
            "disable_manual_sharding first, or the tensor to enable_manual_sharding."
        )
    return [enter(leaf, WHOLE) if _is_whole(leaf) else leaf for leaf in leaves]


def _is_whole(leaf: Any) -> bool:
    return isinstance(leaf, XlaTensor) and leaf.lazy.by_core is None


def _written(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The tensors that an operator writes."""
    arguments = func._schema.arguments
    given = {**{argument.name: value for argument, value in zip(arguments, args)}, **kwargs}
    names = [argument.name for argument in arguments if argument.alias_info and argument.alias_info.is_write]
    return list(pytree.tree_leaves([given.get(name) for name in names]))


def _cores() -> range:
    return range(spread.core_count())


def _padded(part: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """A copy of a part, with zeros behind it."""
    padded = part.new_zeros(tuple(shape))
    padded[tuple(slice(0, extent) for extent in part.shape)] = part
    return padded


def _record(operator: Any, before: LazyValue, options: Sequence[Any], after: LazyValue) -> None:
    graph = current_graph()
    leaves, structure = pytree.tree_flatten(((ValueNumber(graph.number_of(before)), *options), {}))
    graph.add(operator, leaves, structure, [after], current_origin())


@cache
def _enters() -> Any:
    torch.library.define(_ENTERS, "(Tensor input, int[] shape) -> Tensor")
    torch.library.register_fake(_ENTERS, lambda input, shape: input.new_empty(shape))
    becomes(_ENTERS, lambda node: _crossing(FULL_TO_SHARD, MANUAL))
    return torch.ops.neuron_xla.full_to_shard.default


@cache
def _leaves() -> Any:
    torch.library.define(_LEAVES, "(Tensor input, int[] shape, str sharding) -> Tensor")
    torch.library.register_fake(_LEAVES, lambda input, shape, sharding: input.new_empty(shape))
    becomes(_LEAVES, _left)
    return torch.ops.neuron_xla.shard_to_full.default


def _left(node: fx.Node) -> Intrinsic:
    return _crossing(SHARD_TO_FULL, str(node.args[2]))


def _crossing(call: str, sharding: str) -> Intrinsic:
    return Intrinsic("custom_call", {"call_target_name": call, SHARDING: sharding})
