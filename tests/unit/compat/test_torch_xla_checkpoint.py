"""`torch_xla.utils.checkpoint` computes the forward pass again, with the gradients of one that does not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint as plain_checkpoint

from neuron_tools import compat, hardware
from neuron_tools.compiler.compile import compile_module
from neuron_tools.compiler.passes.pipeline import optimise
from neuron_tools.frontends import executables
from neuron_tools.records.program import TensorKind
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


def gradients(device, run, end_step=lambda: None, *, width=8, rows=4, blocks=2):
    torch.manual_seed(0)
    model = nn.Sequential(
        *(
            nn.Sequential(nn.Linear(width, 2 * width), nn.Tanh(), nn.Linear(2 * width, width))
            for _ in range(blocks)
        )
    )
    value = torch.rand(rows, width)
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


@pytest.mark.slow
def test_activations_of_one_block_are_in_memory_at_a_time(checkpoint, provider):
    import torch_xla.core.xla_model as xm

    def held(run):
        gradients(xm.xla_device(), run, xm.mark_step, width=256, rows=2048, blocks=4)
        return held_bytes(compile_module(provider.last, hardware.get("trn1")))

    def kept(block, made):
        return block(made)

    assert held(checkpoint) < 0.6 * held(kept)


def held_bytes(program):
    """Bytes of intermediates in HBM that are in use at once, at most."""
    changes = np.zeros(len(program.dmas) + 1, np.int64)
    for number in np.unique(program.dmas["tensor"]):
        if program.tensors[number].kind is TensorKind.INTERMEDIATE and number >= 0:
            touched = np.flatnonzero(program.dmas["tensor"] == number)
            changes[touched[0]] += program.tensors[number].byte_count
            changes[touched[-1] + 1] -= program.tensors[number].byte_count
    return int(np.cumsum(changes).max())


def activations(module):
    return [operation.opcode for operation in optimise(module).operations].count("tanh")


def test_the_other_form_is_refused(checkpoint):
    with pytest.raises(RuntimeError, match="leave it out"):
        checkpoint(nn.Tanh(), torch.ones(2), use_reentrant=False)
