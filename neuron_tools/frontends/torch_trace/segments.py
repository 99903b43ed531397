"""Which operations of a model's graph run on the device: supported ones, in segments as large as can be."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from typing import Any

import torch
from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupport

from neuron_tools.frontends.torch_compile.provenance import module_classes
from neuron_tools.frontends.torch_lowering.intrinsics import operator_name
from neuron_tools.frozen import frozen

SEGMENT_PREFIX = "segment_"


@frozen
class TracedOperation:
    """What a program that chooses operations sees of each, under the names of AWS's package.

    Attributes:
        name: Names of the classes of the modules that it belongs to, the model's first.
        type_string: The operator ("aten::relu").
    """

    name: tuple[str, ...]
    type_string: str


@frozen
class SegmentRules:
    """What decides where an operation runs.

    Attributes:
        whole: Everything runs on the device, also what has no native lowering.
        host_operators: Names ("aten::embedding") that run on the CPU.
        device_operators: If not empty, only these may run on the device.
        smallest: Operations below which a segment is not worth the way to the device.
        most: How many segments there may be; None means any number.
        chooses: Whether an operation may run on the device; all may by default.
    """

    whole: bool = False
    host_operators: Collection[str] = ()
    device_operators: Collection[str] = ()
    smallest: int = 1
    most: int | None = None
    chooses: Callable[[TracedOperation], bool] | None = None


@frozen
class Segmented:
    """A graph whose device segments are submodules called `segment_<n>`.

    Attributes:
        graph_module: The graph.
        host_operators: Operators left to the CPU, by how often they occur.
    """

    graph_module: fx.GraphModule
    host_operators: Mapping[str, int] = field(default_factory=dict)


def cut_into_segments(
    graph_module: fx.GraphModule, lowers: Callable[[fx.Node], bool], rules: SegmentRules
) -> Segmented:
    """Move what runs on the device into submodules.

    Args:
        graph_module: Functional ATen calls on fake-tensor metadata.
        lowers: Whether an operation has a native lowering.
        rules: What else decides.
    """
    on_device = {node for node in graph_module.graph.nodes if _may_run(node, lowers, rules)}
    partitioner = CapabilityBasedPartitioner(
        graph_module, _Chosen(on_device), allows_single_node_partition=True
    )
    partitions = [part for part in partitioner.propose_partitions() if _worth_it(part.nodes, rules)]
    partitions.sort(key=lambda part: -_operation_count(part.nodes))
    cut: fx.GraphModule = partitioner.fuse_partitions(partitions[: rules.most], prefix=SEGMENT_PREFIX)
    left = [node for node in cut.graph.nodes if is_operation(node)]
    return Segmented(cut, dict(Counter(operator_name(node.target) for node in left)))


class _Chosen(OperatorSupport):
    def __init__(self, nodes: set[fx.Node]) -> None:
        super().__init__()
        self._nodes = nodes

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: fx.Node) -> bool:
        """Whether the node runs on the device; an element of a result runs where the result is made."""
        while node.target is operator.getitem:
            node = node.args[0]
        return node in self._nodes


def _may_run(node: fx.Node, lowers: Callable[[fx.Node], bool], rules: SegmentRules) -> bool:
    if not is_operation(node):
        return False
    name = operator_name(node.target)
    if name in rules.host_operators or (rules.device_operators and name not in rules.device_operators):
        return False
    if rules.chooses is not None and not rules.chooses(TracedOperation(module_classes(node), name)):
        return False
    return rules.whole or lowers(node)


def is_operation(node: fx.Node) -> bool:
    """Whether a node calls an operator."""
    return node.op == "call_function" and node.target is not operator.getitem


def _operation_count(nodes: Any) -> int:
    return sum(map(is_operation, nodes))


def _worth_it(nodes: Any, rules: SegmentRules) -> bool:
    return _operation_count(nodes) >= rules.smallest
