"""`torch_xla.utils.checkpoint` computes the forward pass again, with the gradients of one that does not."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint as plain_checkpoint

from neuron_tools import compat
from neuron_tools.compiler.passes.pipeline import optimise
from neuron_tools.frontends import executables
from tests.unit.frontends.torch_xla.conftest import Provider


@pytest.fixture(scope="module")
def checkpoint():
    uninstall = compat.install()
    from torch_xla.utils.checkpoint import checkpoint as own

    yield own
    uninstall()


@pytest.fixture
def provider():
    made = Provider()
    remove = executables.install(made)
    yield made
    remove()


def gradients(device, run, end_step=lambda: None):
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8)) for _ in range(2)))
    value = torch.rand(4, 8)
    end_step()
    model, value = model.to(device), value.to(device).requires_grad_()
    made = value
    for block in model:
        made = run(block, made)
    made.square().mean().backward()
    end_step()
    return [each.grad.cpu() for each in (value, *model.parameters())]


def test_blocks_are_computed_again(checkpoint, provider):
    import torch_xla.core.xla_model as xm

    expected = gradients("cpu", lambda block, made: block(made))
    found = gradients(xm.xla_device(), checkpoint, xm.mark_step)
    torch.testing.assert_close(found, expected)
    assert activations(provider.last) == 4


def test_what_pytorchs_own_computes_again_is_merged_as_on_the_device(checkpoint, provider):
    import torch_xla.core.xla_model as xm

    def run(block, made):
        return plain_checkpoint(block, made, use_reentrant=True)

    gradients(xm.xla_device(), run, xm.mark_step)
    assert activations(provider.last) == 2


def activations(module):
    return [operation.opcode for operation in optimise(module).operations].count("tanh")


def test_the_other_form_is_refused(checkpoint):
    with pytest.raises(RuntimeError, match="leave it out"):
        checkpoint(nn.Tanh(), torch.ones(2), use_reentrant=False)
