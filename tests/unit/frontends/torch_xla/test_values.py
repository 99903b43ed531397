"""Whatever is done on `xla` has the values that it has on the CPU."""

from __future__ import annotations

import copy
import io
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from neuron_tools.frontends.torch_xla import XlaError, XlaTensor, sync
from neuron_tools.frontends.torch_xla.tensor import neuron_device

VALUES = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))


def write_through_views(device):
    tensor = VALUES.clone().to(device)
    tensor[1:3] += 1
    tensor[:, 0] = 5
    tensor.t()[2].mul_(3)
    return tensor


def write_a_view_in_a_later_graph(device):
    tensor = VALUES.clone().to(device)
    view = tensor.view(-1)
    view[3] = 9
    if device.type == "xla":
        sync()
    view.add_(1)
    return tensor


def differentiate_twice(device):
    tensor = VALUES.clone().to(device).requires_grad_()
    (gradient,) = torch.autograd.grad((tensor**3).sum(), tensor, create_graph=True)
    gradient.sum().backward()
    return tensor.grad


def write_into_an_empty_result(device):
    result = torch.empty(0, device=device)
    torch.add(VALUES.to(device), 1, out=result)
    return result


def change_shape_in_place(device):
    return VALUES.clone().to(device).t_().unsqueeze_(0) + 1


def save_and_load(device):
    file = io.BytesIO()
    torch.save({"values": VALUES.to(device)}, file)
    file.seek(0)
    return torch.load(file, map_location="cpu")["values"]


def load_a_state(device):
    torch.manual_seed(0)
    model, file = nn.Linear(3, 3).to(device), io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    model.load_state_dict(torch.load(file, map_location="cpu"))
    return model.weight.detach()


def convert_a_module(device):
    torch.manual_seed(0)
    model = nn.Linear(5, 3).to(device).to(torch.bfloat16)
    return model(VALUES.to(device, torch.bfloat16)).detach().float()


def narrow_automatically(device):
    torch.manual_seed(0)
    model = nn.Linear(5, 3).to(device)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        return model(VALUES.to(device)).detach()


def checkpoint(device):
    tensor = VALUES.clone().to(device).requires_grad_()
    torch.utils.checkpoint.checkpoint(lambda x: x.sin().exp(), tensor, use_reentrant=False).sum().backward()
    return tensor.grad


def align_with_lengths_on_the_host(device):
    torch.manual_seed(0)
    scores = torch.randn(6, 2, 4).to(device).requires_grad_()
    targets, lengths = torch.tensor([[1, 2], [3, 0]]).to(device), (torch.tensor([6, 4]), torch.tensor([2, 1]))
    nn.functional.ctc_loss(scores.log_softmax(-1), targets, *lengths).backward()
    return scores.grad


PROGRAMS = [
    write_through_views, write_a_view_in_a_later_graph, differentiate_twice, write_into_an_empty_result,
    change_shape_in_place, save_and_load, load_a_state, convert_a_module, narrow_automatically, checkpoint,
    align_with_lengths_on_the_host,
    lambda device: torch.zeros(2, 3, device=device) + torch.arange(3, device=device),
    lambda device: torch.tensor([1.0, 2.0], device=device),
    lambda device: torch.nonzero(VALUES.to(device) > 0),
    lambda device: VALUES.to(device)[VALUES.to(device) > 0],
    lambda device: VALUES.to(device)[torch.tensor([0, 2])],
    lambda device: VALUES.to(device) * torch.tensor(2.0),
    lambda device: copy.deepcopy(VALUES.to(device)),
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_values_are_the_cpus(program, xla):
    torch.testing.assert_close(program(xla).cpu(), program(torch.device("cpu")), rtol=0, atol=0)


def test_a_view_may_have_a_shape_that_no_strides_express(xla):
    tensor = VALUES.to(xla).requires_grad_()
    viewed = tensor.t().view(-1)
    viewed.pow(2).sum().backward()
    torch.testing.assert_close(viewed.detach().cpu(), VALUES.t().reshape(-1))
    torch.testing.assert_close(tensor.grad.cpu(), 2 * VALUES)
    with pytest.raises(RuntimeError, match="invalid for input of size"):
        tensor.t().view(4)


def test_numbers_leave_the_device_when_they_are_looked_at(xla):
    total = VALUES.to(xla).sum()
    assert total.item() == VALUES.sum().item()
    assert VALUES.to(xla).tolist() == VALUES.tolist()
    assert bool((VALUES.to(xla) > 0).any())


def test_tensors_tell_their_device_and_print_their_values(xla):
    tensor = torch.ones(2, device=xla, requires_grad=True)
    assert isinstance(tensor, XlaTensor)
    assert repr(tensor) == "tensor([1., 1.], device='xla:0', requires_grad=True)"


def test_a_tensor_of_the_host_is_refused_beside_one_of_the_device(xla):
    with pytest.raises(XlaError, match=r"shape \[6, 5\] on cpu beside one on xla: move it"):
        VALUES.to(xla).t() @ VALUES


def test_elementwise_operators_take_tensors_of_the_host(xla):
    for total in (VALUES.to(xla) + VALUES, VALUES + VALUES.to(xla)):
        assert total.device == xla
        assert torch.equal(total.cpu(), VALUES + VALUES)


def test_new_data_of_a_parameter_are_its_values(xla):
    parameter = nn.Parameter(torch.zeros(3).to(xla))
    parameter.data = torch.full((3,), 4.0).to(xla)
    assert (parameter * 2).tolist() == [8.0, 8.0, 8.0]


def test_other_threads_use_the_core_of_the_process(xla):
    """Autograd's threads have a current NeuronCore of their own."""
    before = torch.neuron.current_device()
    neuron_device.cache_clear()
    torch.neuron.set_device(1)
    try:
        here = torch.ones(2, device=xla)
        with ThreadPoolExecutor(1) as pool:
            there = pool.submit(torch.ones, 2, device=xla).result()
        assert (here + there).tolist() == [2.0, 2.0]
        assert there.lazy.inner.device.index == 1
    finally:
        torch.neuron.set_device(before)
        neuron_device.cache_clear()
