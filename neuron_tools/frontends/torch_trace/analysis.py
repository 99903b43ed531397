"""Which operators of a model the device runs, without compiling it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

import torch

from neuron_tools.frontends import executables
from neuron_tools.frontends.torch_compile.graph_lowering import unlowered_calls
from neuron_tools.frontends.torch_lowering.intrinsics import operator_name
from neuron_tools.frontends.torch_lowering.layout import StoredTensor
from neuron_tools.frontends.torch_trace.exported import as_module, export_model
from neuron_tools.frontends.torch_trace.segments import is_operation
from neuron_tools.frontends.torch_trace.trace import example_tensors
from neuron_tools.frozen import frozen


@frozen
class Support:
    """How often each operator occurs, by name: those that the device runs and those that it does not."""

    supported: Counter[str]
    unsupported: Counter[str]

    @property
    def percentage(self) -> float:
        """Supported operations of all, in per cent."""
        total = self.supported.total() + self.unsupported.total()
        return 100.0 * self.supported.total() / total if total else 100.0


def analyze(
    function: Callable[..., Any], example_inputs: Any, host_operators: Collection[str] = ()
) -> Support:
    """Find out what of a model the device runs.

    Args:
        function: A module or function of tensors.
        example_inputs: A tensor or a tuple of tensors.
        host_operators: Names that the device does not run whatever the compiler says.

    Raises:
        TraceError: The model cannot be turned into a graph.
    """
    inputs = example_tensors(example_inputs)
    with executables.without_provider(), torch.no_grad():
        exported = export_model(as_module(function), inputs)
        arguments = [StoredTensor.of(value) for value in (*exported.weights, *inputs)]
        unlowered = unlowered_calls(exported.graph_module.graph, arguments)
    support = Support(Counter(), Counter())
    for node in filter(is_operation, exported.graph_module.graph.nodes):
        name = operator_name(node.target)
        runs = node not in unlowered and name not in host_operators
        (support.supported if runs else support.unsupported)[name] += 1
    return support
