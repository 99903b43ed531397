"""What a compiled forward pass keeps for its backward pass."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition
from torch.nn.functional import dropout
from torch.utils.checkpoint import checkpoint

from neuron_tools.frontends.torch_compile.partition import cut_in_two


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()


def kept_by(cut, function):
    """How many tensors the forward pass keeps."""
    kept = []

    def noted(joint, inputs, **how):
        forward, backward = cut(joint, inputs, **how)
        (output,) = (node for node in forward.graph.nodes if node.op == "output")
        kept.append(len(output.args[0]) - how["num_fwd_outputs"])
        return forward, backward

    torch._dynamo.reset()
    back_end = aot_autograd(fw_compiler=lambda graph, _: graph, partition_fn=noted)
    torch.compile(function, backend=back_end)(torch.randn(8, requires_grad=True)).sum().backward()
    return kept[0]


def test_short_chains_are_computed_again():
    def chain(x):
        return (x.exp() * x.sin()).tanh()

    assert kept_by(cut_in_two, chain) == 2 < kept_by(default_partition, chain)


def test_the_tanh_of_a_gelu_is_computed_again_although_autograd_notes_it():
    def gelu(x):
        return (0.5 * x * (1 + torch.tanh(0.8 * (x + 0.04 * x.pow(3))))).cumsum(0)

    assert kept_by(cut_in_two, gelu) == 1 < kept_by(default_partition, gelu)


@pytest.mark.parametrize("in_checkpoint", [False, True])
def test_gradients_vanish_where_the_dropout_of_the_forward_pass_lost_a_value(in_checkpoint):
    def lose(x):
        return dropout(x.exp(), 0.5)

    def run(x):
        return checkpoint(lose, x, use_reentrant=False) if in_checkpoint else lose(x)

    values = torch.randn(64, 32).to("neuron").requires_grad_()
    result = torch.compile(run, backend="neuron")(values)
    result.sum().backward()
    lost = result.detach().cpu() == 0
    assert 0.4 < lost.float().mean() < 0.6
    assert torch.equal(lost, values.grad.cpu() == 0)


def test_checkpoints_of_attention_compile_and_their_gradients_are_the_same():
    """Attention counts as random, whatever its dropout."""
    torch.manual_seed(0)
    reference = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
    layer = copy.deepcopy(reference).to("neuron")
    values = torch.randn(2, 16, 32)

    def run(x):
        return checkpoint(layer, x, use_reentrant=False)

    torch.compile(run, backend="neuron")(values.to("neuron")).square().sum().backward()
    reference(values).square().sum().backward()
    for found, expected in zip(layer.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(found.grad.cpu(), expected.grad)
