"""On which cores traced models run."""

import pytest
import torch

from neuron_tools.frontends.torch_trace.errors import TraceError
from neuron_tools.frontends.torch_trace.placement import all_cores, next_core, on_core, on_cores


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


def test_cores_that_do_not_exist_are_refused():
    with pytest.raises(TraceError, match="There is no NeuronCore 2"), on_cores([0, len(all_cores())]):
        pass
