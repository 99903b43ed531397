"""Wrong calls of a traced model end in one sentence."""

import pytest
import torch
from torch import nn

from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.trace import trace

ROW = torch.ones(1, 4)


class Sum(nn.Module):
    def forward(self, first, second):
        return first + second


@pytest.fixture(scope="module")
def model():
    return trace(Sum(), (ROW, ROW))


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ([[ROW, ROW]], r"takes 2 tensors, .*, and got a list: pass .* \(`model\(\*inputs\)`\)\."),
        ([(ROW, ROW)], "got a tuple: pass"),
        ([ROW], r"takes 2 tensors, one for each example input, and got 1\."),
        ([ROW, ROW, ROW], r"got 3\."),
        ([ROW, 2.0], r"got a float\."),
        ([], r"got 0\."),
    ],
)
def test_a_call_with_other_inputs_says_what_the_model_takes(model, inputs, problem):
    with pytest.raises(TraceError, match=problem):
        model(*inputs)


def test_scripts_of_others_have_their_own_errors():
    with pytest.raises(RuntimeError, match="forward"):
        torch.jit.script(nn.Linear(4, 2))()
