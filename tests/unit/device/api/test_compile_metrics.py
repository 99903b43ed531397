"""`torch.neuron.get_dynamo_metrics`: a row for each graph that `torch.compile` made."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters

from neuron_tools import compat


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, value):
        return self.linear(value)


@pytest.fixture(autouse=True)
def anew():
    torch._dynamo.reset()
    torch.neuron.reset_dynamo_metrics()
    yield
    torch.neuron.reset_dynamo_metrics()


def test_each_graph_has_a_row():
    layer = torch.compile(Layer().to("neuron"), backend="neuron", dynamic=False)
    layer(torch.ones(3, 4, device="neuron")).sum().backward()
    layer(torch.ones(3, 4, device="neuron"))
    forward, backward = torch.neuron.get_dynamo_metrics()
    assert forward.model_name == backward.model_name == "Layer"
    assert (forward.graph_name[-8:], backward.graph_name[-9:]) == ("_forward", "_backward")
    assert forward.graph_node_count > 3
    assert not forward.has_collectives
    assert forward.graph_id != backward.graph_id
    assert counters["neuron"]["compiled_graphs"] == 2
    torch.neuron.reset_dynamo_metrics()
    assert torch.neuron.get_dynamo_metrics() == []
    assert counters["neuron"]["compiled_graphs"] == 0


def test_a_program_names_its_model():
    from neuron_tools.frontends.torch_compile import naming

    uninstall = compat.install()
    try:
        from torch_neuronx import neuron_dynamo_backend

        assert neuron_dynamo_backend.get_model_name() == "model_default"
        neuron_dynamo_backend.set_model_name("encoder")
        assert neuron_dynamo_backend.get_model_name() == "encoder"
        backend = neuron_dynamo_backend.create_neuron_backend()
        torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2, device="neuron"))
        (row,) = torch.neuron.get_dynamo_metrics()
    finally:
        naming.set_model_name("")
        uninstall()
    assert row.model_name == "encoder"
    assert row.graph_name.startswith("encoder_")
