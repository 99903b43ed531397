"""What Python asks of a tensor while a library traces a model is answered from the example inputs."""

from __future__ import annotations

import copy

import pytest
import torch

from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.exported import export_model

DATA = torch.arange(4.0)


class Branches(torch.nn.Module):
    """A branch on an input, one on what is computed of both, and one on a constant."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((4,), 3.0))

    def forward(self, data, limits):
        if torch.any(limits < 1.0):
            data = data + 100
        if (data.index_fill(0, torch.tensor([1]), 0.0).sum() > limits.sum()).all():
            data = data * 2
        if torch.tensor([1, 2]).sum() == 3:
            data = data - 1
        return data * self.weight


class Copies(torch.nn.Module):
    def forward(self, data):
        changed = copy.deepcopy(data)
        changed.index_fill_(0, torch.tensor([0]), 7.0)
        return data, changed


@pytest.mark.parametrize("limit", [0.0, 1.0, 5.0])
def test_the_branch_of_the_example_inputs_is_taken_with_a_warning(limit):
    model, inputs = Branches(), (DATA, torch.full((4,), limit))
    with pytest.warns(torch.jit.TracerWarning, match="takes the branch of the example inputs"):
        exported = export_model(model, inputs, by_example=True)
    other = DATA * 3 + 1
    (result,) = exported.graph_module(*exported.weights, other, inputs[1])
    expected = (other + 100 * (limit < 1)) * (2 if limit < 5 else 1) - 1
    torch.testing.assert_close(result, expected * 3)


def test_a_copy_is_another_tensor():
    exported = export_model(Copies(), (DATA,), by_example=True)
    for result, expected in zip(exported.graph_module(*exported.weights, DATA), Copies()(DATA)):
        torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("decides", [lambda model, data: model.weight, lambda model, data: torch.rand(4)])
def test_what_the_inputs_alone_do_not_decide_is_refused(decides):
    model = Branches()
    model.forward = lambda data: data if (decides(model, data) > 0).all() else -data
    with pytest.raises(TraceError, match="control flow does not depend on values"):
        export_model(model, (DATA,), by_example=True)
