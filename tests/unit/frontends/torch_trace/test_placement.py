"""On which cores traced models run."""

import pytest
import torch

from neuron_tools.frontends.torch_trace import placement
from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.placement import all_cores, choose_cores, next_core, on_core, on_cores


def core_of_a_call():
    with next_core():
        return torch.neuron.current_device()


def test_calls_take_turns_on_the_cores_of_a_block():
    with on_cores([1, 0]):
        assert [core_of_a_call() for _ in range(3)] == [1, 0, 1]
        assert torch.neuron.current_device() == 0


def test_an_inner_block_begins_its_own_turns():
    with on_cores([0, 1]):
        assert core_of_a_call() == 0
        with on_cores([1]):
            assert [core_of_a_call(), core_of_a_call()] == [1, 1]
        assert core_of_a_call() == 1


def test_outside_a_block_a_call_stays_where_it_is():
    with on_core(1):
        assert core_of_a_call() == 1
    assert core_of_a_call() == torch.neuron.current_device()


def test_chosen_cores_take_calls_for_which_nothing_else_chooses(monkeypatch):
    monkeypatch.setattr(placement, "_otherwise", [])
    choose_cores([1])
    assert core_of_a_call() == 1
    with on_core(0):
        assert core_of_a_call() == 0
    module = torch.nn.Identity()
    placement.place(module, [0])
    module.register_forward_hook(lambda *_: cores.append(core_of_a_call()), prepend=True)
    cores: list[int] = []
    module(torch.ones(1))
    assert [*cores, core_of_a_call()] == [0, 1]


def test_a_call_that_fails_leaves_the_core(monkeypatch):
    class Fails(torch.nn.Module):
        def forward(self, value):
            raise ValueError(f"on core {torch.neuron.current_device()}")

    module = Fails()
    placement.place(module, [1])
    with pytest.raises(ValueError, match="on core 1"):
        module(torch.ones(1))
    monkeypatch.setattr(placement, "_otherwise", [])
    choose_cores([1])
    assert [torch.neuron.current_device(), core_of_a_call()] == [0, 1]


def test_cores_that_do_not_exist_are_refused():
    with pytest.raises(TraceError, match="There is no NeuronCore 2"), on_cores([0, len(all_cores())]):
        pass
