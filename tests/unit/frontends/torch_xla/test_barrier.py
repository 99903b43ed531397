"""A barrier is an operation of the graph; what is made behind it is computed again."""

from __future__ import annotations

import torch

from neuron_tools.compiler.opcodes import BARRIER
from neuron_tools.compiler.passes.pipeline import optimise
from neuron_tools.frontends.torch_xla import sync
from neuron_tools.frontends.torch_xla.barrier import put_barrier


def opcodes(module):
    return [operation.opcode for operation in module.operations]


def test_what_is_made_behind_a_barrier_is_not_merged_with_the_same_before(provider, xla):
    first, second = torch.rand(8, 8).to(xla), torch.rand(8, 8).to(xla)
    before = first.exp() + second.exp()
    put_barrier([first, second])
    after = first.exp() * second.exp()
    sync()
    assert opcodes(provider.last).count(BARRIER) == 1
    assert opcodes(optimise(provider.last)).count("exponential") == 4
    assert torch.equal(before.cpu(), first.cpu().exp() + second.cpu().exp())
    assert torch.equal(after.cpu(), first.cpu().exp() * second.cpu().exp())


def test_tensors_elsewhere_and_none_need_no_barrier(provider, xla):
    tensor = torch.ones(2)
    put_barrier([tensor])
    put_barrier([])
    sync()
    assert not provider.executions


def test_results_behind_a_barrier_are_held_like_others(counter, xla):
    tensor = torch.ones(4).to(xla) * 3
    put_barrier([tensor])
    sync()
    tensor.add_(1)
    sync()
    assert tensor.tolist() == [4.0] * 4
