"""Eager operators that wait for the device together, to one `hlo.Module`.

Each is what `lower_operation` makes of it; what one wrote another reads is a value instead of memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from neuron_tools.compiler.hlo import Module
from neuron_tools.frontends.torch_eager.arguments import Call, NumberTensor, read_call
from neuron_tools.frontends.torch_eager.canonical import canonical_arguments
from neuron_tools.frontends.torch_eager.overlay import Region, see
from neuron_tools.frontends.torch_lowering.builder import GraphBuilder
from neuron_tools.frontends.torch_lowering.clean_thread import run_clean
from neuron_tools.frontends.torch_lowering.layout import StoredTensor
from neuron_tools.frontends.torch_lowering.lowering import lower
from neuron_tools.frozen import frozen
from neuron_tools.records.program import FrameworkOperation

Place = tuple[int, int]
"""Buffer (-1: the host's) and offset in elements."""


@frozen
class Result:
    """A tensor that an operator made or wrote.

    Attributes:
        buffer: Whose memory it has.
        needed: Whether anybody can still read it.
    """

    buffer: int
    region: Region
    needed: bool


@frozen
class WaitingOperation:
    """An operator as the device saw it, and which memory its tensors have.

    Attributes:
        name: Qualified operator name.
        arguments: As the device passes them.
        uses: Of each tensor argument, in order.
    """

    name: str
    arguments: tuple[Any, ...]
    uses: tuple[Place, ...]
    results: tuple[Result, ...]


class NotFusable(Exception):
    """An operator cannot be put behind those before it.

    Attributes:
        position: Its position among them.
    """

    def __init__(self, position: int) -> None:
        super().__init__(f"operation {position}")
        self.position = position


def lower_fused(operations: Sequence[WaitingOperation], name: str) -> Module:
    """Lower operators that run as one execution.

    Args:
        operations: In their order.
        name: The module's name.

    Returns:
        A module with one framework row per operator, whose results are what is needed afterwards.

    Raises:
        NotFusable: An operator reads memory in a way that no view of what was written there gives.
    """
    return run_clean(_lower, tuple(operations), name)


def _lower(operations: Sequence[WaitingOperation], name: str) -> Module:
    framework = tuple(FrameworkOperation(name=each.name.split(".")[0]) for each in operations)
    return lower(lambda builder: _Fusion(builder).build(operations), framework, name)


@dataclass(slots=True)
class _Memory:
    """What the operators so far left in each buffer, and the parameters that they read.

    Attributes:
        held: The newest value of a buffer, and the region that it fills.
        read: Parameters by buffer and region.
        stored_by: Framework row of what wrote a buffer last.
    """

    builder: GraphBuilder
    held: dict[int, tuple[Any, Region]] = field(default_factory=dict)
    read: dict[tuple[int, Region], Any] = field(default_factory=dict)
    stored_by: dict[int, int] = field(default_factory=dict)

    def load(self, buffer: int, region: Region, row: int) -> Any:
        if buffer < 0:
            return region.tensor.place(self.builder, row=row)
        if buffer in self.held:
            node = see(self.builder, *self.held[buffer], region, row)
            if node is None:
                raise NotFusable(row)
            return node
        key = (buffer, region)
        if key not in self.read:
            self.read[key] = region.tensor.place(self.builder, row=row)
        return self.read[key]

    def store(self, buffer: int, region: Region, node: Any, row: int) -> None:
        if buffer in self.held and not region.covers(self.held[buffer][1]):
            raise NotFusable(row)
        self.held[buffer] = (node, region)
        self.stored_by[buffer] = row

    def settle(self, dropped: set[int]) -> list[fx.Node]:
        """The last values of buffers that are not dropped, each in memory of its own."""
        values: list[fx.Node] = []
        for buffer, (node, region) in self.held.items():
            before = self.read.get((buffer, region))
            if buffer in dropped or node is before:
                continue
            if node in values or node in self.builder.parameters:
                node = self.builder.copy(node, self.stored_by[buffer])
            self.builder.take_over(node, before)
            values.append(node)
        return values


class _Fusion:
    """Adds operators to a builder one after the other."""

    def __init__(self, builder: GraphBuilder) -> None:
        self._builder = builder
        self._memory = _Memory(builder)
        self._dropped: set[int] = set()

    def build(self, operations: Sequence[WaitingOperation]) -> list[fx.Node]:
        """Add them all; returns the values that are needed afterwards."""
        for row, operation in enumerate(operations):
            self._add(row, operation)
        results = self._memory.settle(self._dropped) or self._memory.settle(set())[-1:]
        return [node for node in results if node.meta["val"].numel()]

    def _add(self, row: int, operation: WaitingOperation) -> None:
        call = read_call(operation.name, canonical_arguments(operation.arguments))
        leaves, structure = pytree.tree_flatten((call.args, call.kwargs))
        places = self._places(row, leaves, operation.uses)
        nodes = [self._argument(row, call, leaf, place) for leaf, place in zip(leaves, places)]
        args, kwargs = pytree.tree_unflatten(nodes, structure)
        before = len(self._builder.written)
        result = self._builder.call(call.target, args, kwargs, row=row)
        written = self._store_arguments(row, call, list(zip(leaves, places)), self._builder.written[before:])
        self._store_results(row, call, operation, result, written)

    def _places(self, row: int, leaves: list[Any], uses: tuple[Place, ...]) -> list[Place | None]:
        """The memory of each leaf that is a tensor."""
        remaining = iter(uses)
        is_tensor = [isinstance(leaf, (StoredTensor, NumberTensor)) for leaf in leaves]
        if sum(is_tensor) != len(uses):
            raise NotFusable(row)
        return [next(remaining) if tensor else None for tensor in is_tensor]

    def _argument(self, row: int, call: Call, leaf: Any, place: Place | None) -> Any:
        if place is None or not isinstance(leaf, StoredTensor):
            return call.place(self._builder, leaf)
        return self._memory.load(place[0], Region(place[1], leaf), row)

    def _store_arguments(
        self, row: int, call: Call, placed: list[tuple[Any, Place | None]], values: list[Any]
    ) -> set[int]:
        """Put the new values of written arguments where they are; returns their buffers."""
        written = [placed[position] for position in call.written_leaves]
        if len(written) != len(values):
            raise NotFusable(row)
        for (leaf, place), value in zip(written, values):
            if place is None or place[0] < 0 or not isinstance(leaf, StoredTensor):
                raise NotFusable(row)
            self._memory.store(place[0], Region(place[1], leaf), value, row)
        return {place[0] for _, place in written if place is not None}

    def _store_results(
        self, row: int, call: Call, operation: WaitingOperation, result: Any, written: set[int]
    ) -> None:
        self._dropped |= {each.buffer for each in operation.results if not each.needed}
        made = [each for each in operation.results if each.buffer not in written]
        nodes = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, fx.Node)]
        if written and not made:
            return
        if len(made) != len(nodes):
            raise NotFusable(row)
        for each, node in zip(made, nodes):
            region = each.region
            if call.order is not None and len(region.tensor.sizes) == len(call.order):
                region = Region(region.offset, region.tensor.permuted(call.order))
            if (
                tuple(node.meta["val"].shape) != region.tensor.sizes
                or node.meta["val"].dtype != region.tensor.dtype
            ):
                raise NotFusable(row)
            self._memory.store(each.buffer, region, node, row)


def result_of(
    buffer: int, offset: int, dtype: str, sizes: list[int], strides: list[int], needed: bool
) -> Result:
    """A result as the device tells it."""
    tensor = StoredTensor(getattr(torch, dtype), tuple(sizes), tuple(strides))
    return Result(buffer, Region(offset, tensor), needed)
