"""What a program compiles for the device by name runs there, though its tensors are on the CPU."""

from __future__ import annotations

import pytest
import torch
from torch import nn

VALUE = torch.arange(6.0).reshape(2, 3)


@pytest.fixture(autouse=True)
def anew():
    torch._dynamo.reset()


def compiled(function):
    return torch.compile(function, backend="neuron", dynamic=False)


def test_results_are_on_the_device_and_arguments_stay():
    result = compiled(lambda x: x * 2 + torch.arange(3, device="cpu"))(VALUE)
    assert (result.device.type, VALUE.device.type) == ("neuron", "cpu")
    torch.testing.assert_close(result.cpu(), VALUE * 2 + torch.arange(3))


def test_what_the_graph_writes_reaches_the_cpus_tensor():
    norm, expected = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    with torch.no_grad():
        result = compiled(norm)(VALUE)
        torch.testing.assert_close(result.cpu(), expected(VALUE))
    assert norm.running_mean.device.type == "cpu"
    torch.testing.assert_close(norm.running_mean, expected.running_mean)
    assert norm.num_batches_tracked == 1


def test_results_come_back_where_that_is_asked_for(monkeypatch):
    monkeypatch.setenv("TORCH_NEURONX_RETAIN_DEVICE_MODE", "1")
    assert compiled(lambda x: x + 1)(VALUE).device.type == "cpu"


def test_a_program_may_want_no_copies(monkeypatch):
    monkeypatch.setenv("TORCH_NEURONX_DYNAMO_DISABLE_CPU_AUTOCOPY", "1")
    with pytest.raises(Exception, match=r'move them by to\("neuron"\)'):
        compiled(lambda x: x + 1)(VALUE)
    assert compiled(lambda x: x + 1)(VALUE.to("neuron")).device.type == "neuron"


def test_a_graph_that_trains_stays_where_its_parameters_are():
    layer = nn.Linear(3, 1)
    compiled(layer)(VALUE).sum().backward()
    assert layer.weight.grad.device.type == "cpu"
