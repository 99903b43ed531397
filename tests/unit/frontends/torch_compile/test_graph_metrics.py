"""Times of lowering and compiling are those of each graph, and only of what was done."""

from __future__ import annotations

import time

import torch

from neuron_tools.device.api.compile_metrics import NeuronCompilationMetrics
from neuron_tools.frontends import executables
from neuron_tools.frontends.torch_compile import graph_metrics


def test_a_module_that_is_made_adds_its_times():
    row = NeuronCompilationMetrics("1")
    lowering = graph_metrics.TimedLowering(lambda: time.sleep(0.002) or "module", row)
    assert lowering() == "module"
    time.sleep(0.001)
    lowering.compiled()
    assert row.torch_neuronx_lower_us >= 2000
    assert row.torch_neuronx_compile_us >= 1000


def test_a_module_that_is_known_already_adds_nothing():
    row = NeuronCompilationMetrics("1")
    graph_metrics.TimedLowering(lambda: None, row).compiled()
    assert row == NeuronCompilationMetrics("1")


def test_a_capture_fills_in_the_times_of_the_graphs_that_run_in_it():
    class Provider:
        def executable_for(self, module_factory, key, name, shared=None):
            module_factory()
            return 1, 1000

    torch._dynamo.reset()
    torch.neuron.reset_dynamo_metrics()
    double = torch.compile(lambda x: x * 2, backend="neuron", dynamic=False)
    value = torch.ones(8, 8, device="neuron")
    double(value)
    (before,) = torch.neuron.get_dynamo_metrics()
    assert before.torch_neuronx_lower_us == 0
    remove = executables.install(Provider())
    try:
        double(value)
    finally:
        remove()
    (row,) = torch.neuron.get_dynamo_metrics()
    torch.neuron.reset_dynamo_metrics()
    assert row.torch_neuronx_lower_us > 0
