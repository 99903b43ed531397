"""NeuronCore Pipeline: a segment's operations shared out over cores, each of which keeps its weights in SBUF.

Requests stream through the cores: while one core works on a request, the one before it has the next
(aws-neuron-sdk, about-neuron/arch/neuron-features/neuroncore-pipeline.rst). Stages are runs of the graph's
operations, in its order, that take about the same time; what a stage makes is read by later ones from the
memory of their chip.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import FlopCounterMode

from neuron_tools.compiler import CompilerOptions
from neuron_tools.hardware import NeuronCore

HANDED_ON = "handed_on.json"
"""Attachment of an archive for several cores: bytes that each hands on."""
_TRIES = 40
"""Halvings of the interval in which the least time of the slowest stage is searched."""


@dataclass(frozen=True)
class Stage:
    """What one core does.

    Attributes:
        module: Takes what its placeholders stand for, and returns a tuple.
        sources: For each placeholder, the node of the whole segment that it stands for.
        results: For each result, the node of the whole segment that makes it.
        handed_on_bytes: What it and the stages before it make and later ones read.
    """

    module: fx.GraphModule
    sources: tuple[fx.Node, ...]
    results: tuple[fx.Node, ...]
    handed_on_bytes: int = 0


def cut_into_stages(
    module: fx.GraphModule,
    weights: Mapping[fx.Node, torch.Tensor],
    count: int,
    core: NeuronCore,
    options: CompilerOptions,
) -> list[Stage]:
    """Cut a segment for so many cores; a small one may need fewer.

    Args:
        module: Functional ATen calls on fake-tensor metadata.
        weights: The values of placeholders that are weights.
        count: Cores.
        core: What each of them is.
        options: What the stages will be compiled with.
    """
    nodes = _operations(module)
    costs = _Costs(nodes, weights, count, core, options)
    ends = _ends(costs, count)
    number = {node: sum(end <= index for end in ends[:-1]) for index, node in enumerate(nodes)}
    for node in nodes:
        if node.target is operator.getitem:
            number[node] = number[node.args[0]]
    return [
        replace(_stage(module, nodes, number, stage), handed_on_bytes=costs.crossing(end))
        for stage, end in enumerate(ends)
    ]


def seconds_on_one_core(
    module: fx.GraphModule,
    weights: Mapping[fx.Node, torch.Tensor],
    count: int,
    core: NeuronCore,
    options: CompilerOptions,
) -> float:
    """What a segment takes on one core that keeps as much of its weights as so many cores would, roughly.

    Args:
        module: Functional ATen calls on fake-tensor metadata.
        weights: The values of placeholders that are weights.
        count: Cores.
        core: What each of them is.
        options: What it will be compiled with.
    """
    return _Costs(_operations(module), weights, count, core, options).total


def _operations(module: fx.GraphModule) -> list[fx.Node]:
    return [node for node in module.graph.nodes if node.op not in ("placeholder", "output")]


class _Costs:
    """What runs of operations take, in seconds."""

    def __init__(
        self, nodes: Sequence[fx.Node], weights: Mapping[fx.Node, torch.Tensor], count: int,
        core: NeuronCore, options: CompilerOptions,
    ) -> None:  # fmt: skip
        self._core = core
        self._narrow = options.auto_cast != "none"
        total = sum(self._bytes(weight) for weight in weights.values())
        streamed = max(0.0, 1.0 - count * core.weight_cache_bytes / total) if total else 0.0
        self._sums = [0.0]
        seen: set[fx.Node] = set()
        for node in nodes:
            new = [source for source in node.all_input_nodes if source in weights and source not in seen]
            seen.update(new)
            loaded = streamed * sum(self._bytes(weights[source]) for source in new)
            self._sums.append(self._sums[-1] + self._seconds(node) + loaded / core.hbm_bandwidth)
        self._crossing = self._crossings(nodes)

    def __len__(self) -> int:
        return len(self._sums) - 1

    @property
    def total(self) -> float:
        """Of all operations on one core."""
        return self._sums[-1]

    def stage(self, start: int, end: int) -> float:
        """Of operations `start` to `end`, or of handing on what later ones read, if that is more."""
        handing_on = 2 * self._crossing[end] / self._core.hbm_bandwidth
        return max(self._sums[end] - self._sums[start], handing_on)

    def crossing(self, position: int) -> int:
        """Bytes that are made before a position and read at or behind it."""
        return self._crossing[position]

    def _seconds(self, node: fx.Node) -> float:
        made = sum(leaf.numel() for leaf in _tensors(node))
        speed = 1.0 if self._narrow else self._core.tensor_speed_f32
        seconds = made / (self._core.vector_lanes * self._core.vector_clock_ghz * 1e9)
        seconds += _flops(node) / (self._core.peak_tensor_flops * speed)
        return float(seconds)

    def _bytes(self, value: torch.Tensor) -> int:
        size = 2 if self._narrow and value.is_floating_point() else value.element_size()
        return int(value.numel() * size)

    def _crossings(self, nodes: Sequence[fx.Node]) -> list[int]:
        """(positions,) bytes that are made before a position and read at or behind it."""
        position = {node: index for index, node in enumerate(nodes)}
        changes = [0] * (len(nodes) + 2)
        for index, node in enumerate(nodes):
            last = max((position.get(user, index) for user in node.users), default=index)
            size = sum(self._bytes(leaf) for leaf in _tensors(node))
            changes[index + 1] += size
            changes[last + 1] -= size
        crossing = [0]
        for change in changes[1 : len(nodes) + 1]:
            crossing.append(crossing[-1] + change)
        crossing[-1] = 0
        return crossing


def _flops(node: fx.Node) -> int:
    """Of an operation's matrix products, also where it is made of others."""
    args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda source: source.meta.get("val"))
    values = pytree.tree_leaves((args, kwargs))
    mode = next((value.fake_mode for value in values if isinstance(value, FakeTensor)), None)
    if mode is None or not callable(node.target):
        return 0
    with mode, FlopCounterMode(display=False) as counter:
        node.target(*args, **kwargs)
    return int(counter.get_total_flops())


def _tensors(node: fx.Node) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(node.meta.get("val")) if isinstance(leaf, torch.Tensor)]


def _ends(costs: _Costs, count: int) -> list[int]:
    """Where each stage ends so that the slowest one is as quick as can be."""
    low, high = costs.total / count, costs.total * 2 + 1e-9
    best = [len(costs)]
    for _ in range(_TRIES):
        limit = (low + high) / 2
        ends = _filled(costs, limit, count)
        if ends is None:
            low = limit
        else:
            best, high = ends, limit
    return best


def _filled(costs: _Costs, limit: float, count: int) -> list[int] | None:
    """Stages within a limit, each with as much as it can have; None where there are too many."""
    ends: list[int] = []
    start = 0
    while start < len(costs):
        fitting = [end for end in range(start + 1, len(costs) + 1) if costs.stage(start, end) <= limit]
        if not fitting or len(ends) == count:
            return None
        start = fitting[-1]
        ends.append(start)
    return ends


def _stage(
    module: fx.GraphModule, nodes: Sequence[fx.Node], number: Mapping[fx.Node, int], stage: int
) -> Stage:
    graph = fx.Graph()
    own = [node for node in nodes if number[node] == stage]
    inputs = dict.fromkeys(
        source for node in own for source in node.all_input_nodes if number.get(source) != stage
    )
    copies = {source: graph.placeholder(source.name) for source in inputs}
    for source, copied in copies.items():
        copied.meta.update(source.meta)
    for node in own:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    results = tuple(node for node in own if _leaves(node, number, stage))
    graph.output(tuple(copies[node] for node in results))
    return Stage(fx.GraphModule(module, graph), tuple(inputs), results)


def _leaves(node: fx.Node, number: Mapping[fx.Node, int], stage: int) -> bool:
    """Whether another stage, or whoever called the segment, reads what a node makes."""
    return any(number.get(user) != stage for user in node.users) and bool(_tensors(node))
