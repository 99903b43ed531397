import torch

from neuron_tools.capture.tensor_names import TensorNames
from neuron_tools.device import native


def told(module, path="Net"):
    found = []
    names = TensorNames(lambda *named: found.append(named))
    names.tell(path, module)
    names.tell(path, module)
    return found


def test_parameters_and_buffers_on_the_device_are_named_once():
    net = torch.nn.BatchNorm1d(4).to("neuron")
    net.tied = net.weight
    assert told(net) == [
        (native.buffer_number(net.weight), "Net.weight", "parameter"),
        (native.buffer_number(net.bias), "Net.bias", "parameter"),
        (native.buffer_number(net.running_mean), "Net.running_mean", "buffer"),
        (native.buffer_number(net.running_var), "Net.running_var", "buffer"),
        (native.buffer_number(net.num_batches_tracked), "Net.num_batches_tracked", "buffer"),
    ]


def test_what_is_not_on_the_device_has_no_name():
    assert told(torch.nn.Linear(2, 2)) == []
    assert told(torch.nn.Linear(2, 2, device="meta")) == []


def test_views_of_one_memory_have_its_number():
    whole, other = torch.zeros(8, device="neuron"), torch.zeros(8, device="neuron")
    assert native.buffer_number(whole[4:]) == native.buffer_number(whole) > 0
    assert native.buffer_number(other) != native.buffer_number(whole)
