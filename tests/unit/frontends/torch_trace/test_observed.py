"""A model whose states show, and what exporting it leaves to others."""

import threading

import torch
from torch import nn

from neuron_tools.frontends.torch_trace.observed import ObservedModel


class Plain(nn.Module):
    """Makes its input plain, and meanwhile runs a function in another thread."""

    def __init__(self, meanwhile):
        super().__init__()
        self.meanwhile = meanwhile

    def forward(self, value):
        self.is_same = value.as_subclass(torch.Tensor) is value
        self.meanwhile()
        return (value.as_subclass(torch.Tensor) is value,)


def is_same(value):
    return value.as_subclass(torch.Tensor) is value


def in_another_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_other_threads_have_tensors_of_their_own_meanwhile():
    value, found = torch.ones(2), []
    model = ObservedModel(Plain(lambda: found.append(in_another_thread(lambda: is_same(value)))))
    (result, _) = model(value)
    assert (result, found, is_same(value)) == ((True,), [False], False)


def test_models_are_observed_in_several_threads_at_once():
    value = torch.ones(2)
    inner = ObservedModel(Plain(lambda: None))
    outer = ObservedModel(Plain(lambda: in_another_thread(lambda: inner(value))))
    (result, _) = outer(value)
    assert result == (True,)
    assert not is_same(value)
