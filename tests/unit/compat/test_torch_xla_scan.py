"""`scan_layers` gives what the layers give one after the other, compiled once."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from neuron_tools import compat
from neuron_tools.frontends import executables
from tests.unit.frontends.torch_xla.conftest import Provider


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.register_buffer("scale", torch.full((width,), 0.5))

    def forward(self, value):
        return value + self.scale * self.narrow(nn.functional.gelu(self.wide(self.norm(value))))


@pytest.fixture(scope="module")
def scan_layers():
    uninstall = compat.install()
    from torch_xla.experimental.scan_layers import scan_layers as own

    yield own
    uninstall()


def trained(device, call, *, count=3, end_step=lambda: None):
    """Losses of a few steps, and the parameters behind them."""
    torch.manual_seed(0)
    layers = nn.ModuleList([Layer(8) for _ in range(count)]).to(device)
    optimizer, losses = torch.optim.SGD(layers.parameters(), lr=0.1), []
    for _ in range(3):
        optimizer.zero_grad()
        loss = call(layers, torch.ones(4, 8).to(device)).square().mean()
        loss.backward()
        optimizer.step()
        end_step()
        losses.append(loss.detach().cpu())
    return losses + [each.detach().cpu() for each in layers.parameters()]


def in_turn(layers, value):
    return nn.Sequential(*layers)(value)


def test_losses_and_parameters_are_those_of_the_layers_in_turn(scan_layers):
    import torch_xla

    found = trained("xla", scan_layers, end_step=torch_xla.sync)
    for value, expected in zip(found, trained("cpu", in_turn), strict=True):
        torch.testing.assert_close(value, expected)


def test_each_step_is_one_graph_whose_size_does_not_grow_with_the_layers(scan_layers):
    import torch_xla

    loops = []
    for count in (3, 9):
        provider = Provider()
        remove = executables.install(provider)
        try:
            trained("xla", scan_layers, count=count, end_step=torch_xla.sync)
        finally:
            remove()
        assert len(provider.modules) <= 2
        loops.append(
            [len(each.regions[1].operations) for each in provider.last.operations if each.opcode == "while"]
        )
    assert len(loops[0]) == 2
    assert loops[0] == loops[1]


def test_no_layers_give_what_they_are_given(scan_layers):
    value = torch.ones(2)
    assert scan_layers([], value) is value


def test_layers_without_parameters_are_called(scan_layers):
    assert scan_layers([nn.ReLU(), nn.ReLU()], -torch.ones(2).to("xla")).tolist() == [0.0, 0.0]


def test_layers_that_differ_are_refused_by_name(scan_layers):
    layers = [nn.Linear(4, 4).to("xla"), nn.Linear(4, 4, bias=False).to("xla")]
    with pytest.raises(ValueError, match="Layer 1 and the first differ in bias"):
        scan_layers(layers, torch.ones(4).to("xla"))


def test_layers_of_different_types_are_refused_by_name(scan_layers):
    layers = [nn.Linear(4, 4, bias=False).to("xla", kind) for kind in (torch.float32, torch.bfloat16)]
    with pytest.raises(ValueError, match=r"first differ in weight \(\[4, 4\] torch.bfloat16"):
        scan_layers(layers, torch.ones(4).to("xla"))


def test_running_statistics_that_would_be_lost_are_refused(scan_layers):
    layers = nn.Sequential(nn.BatchNorm1d(4), nn.BatchNorm1d(4)).to("xla")
    value = torch.arange(8.0).reshape(2, 4).to("xla")
    with pytest.raises(ValueError, match="writes in place"):
        scan_layers(layers, value)
    layers.eval()
    torch.testing.assert_close(scan_layers(layers, value).cpu(), layers(value).cpu())


def test_what_is_no_function_is_refused(scan_layers):
    from torch_xla.experimental.scan import scan

    with pytest.raises(ValueError, match="needs a function"):
        scan(None, torch.ones(2), torch.ones(3, 2))


def test_fori_loop_makes_as_many_trips_as_lie_between_its_bounds(scan_layers):
    import torch_xla
    from torch_xla.experimental.fori_loop import fori_loop

    device = torch_xla.device()
    bounds = [torch.tensor(each).to(device) for each in (2, 7)]
    left, value = fori_loop(*bounds, lambda value: value + 1, torch.tensor(1.0).to(device))
    assert (left.item(), value.item()) == (0, 6)
    left, first, second = fori_loop(*bounds, lambda one, other: (other, one + other), value, value)
    assert (left.item(), first.item(), second.item()) == (0, 48, 78)


def test_while_loop_takes_what_both_functions_read(scan_layers):
    import torch_xla
    from torch_xla.experimental.fori_loop import while_loop

    device = torch_xla.device()
    limit, step = (torch.tensor(each).to(device) for each in (10.0, 3.0))
    (value,) = while_loop(
        lambda value, limit, step: value < limit,
        lambda value, limit, step: (value + step,),
        (torch.tensor(0.0).to(device),),
        (limit, step),
    )
    assert value.item() == 12
