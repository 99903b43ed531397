"""`while_loop` is one loop of the program, whose trips values decide, with the values of calls one by one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch._higher_order_ops.while_loop import while_loop as while_loop_of_torch

from neuron_tools.compiler.compile import compile_module
from neuron_tools.frontends.torch_xla import XlaError, sync
from neuron_tools.frontends.torch_xla.repeating import while_loop
from tests.unit.compiler.modules import CORE


def line_of(comment):
    lines = Path(__file__).read_text().splitlines()
    return next(at for at, text in enumerate(lines, 1) if text.endswith(f"# line: {comment}"))


WEIGHT = torch.randn(8, 8, generator=torch.Generator().manual_seed(0))


def loop(device, trips, call):
    """Trips that multiply by a tensor from outside, and stop early where values are large."""
    weight, limit = WEIGHT.to(device), torch.tensor(50.0).to(device)

    def goes_on(state):
        return (state["left"] > 0) & (state["value"].abs().max() < limit)  # line: condition

    def step(state):
        value = torch.tanh(state["value"] @ weight) * 2  # line: step
        return ({"left": state["left"] - 1, "value": value},)

    state = {"left": torch.tensor(trips).to(device), "value": torch.ones(4, 8).to(device)}
    return call(goes_on, step, (state,))[0]


def by_hand(condition, step, carried):
    while condition(*carried):
        carried = step(*carried)
    return carried


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_values_are_those_of_trips_one_by_one(xla, trips):
    expected, found = loop(torch.device("cpu"), trips, by_hand), loop(xla, trips, while_loop)
    torch.testing.assert_close(found["value"].cpu(), expected["value"])
    assert found["left"].item() == expected["left"].item()


def test_any_number_of_trips_is_one_graph_timed_by_it(provider, xla):
    for trips in (3, 5, 3):
        kept = loop(xla, trips, while_loop)
        sync()
    assert kept["left"].item() == 0
    three, five = provider.modules.values()
    assert provider.executions == [1, 2, 1]
    counts = [each.attributes["trip_count"] for module in (three, five) for each in loops(module)]
    assert counts == [3, 5]
    instructions = [len(compile_module(module, CORE).instructions) for module in (three, five)]
    assert 1.5 < instructions[1] / instructions[0] < 1.8
    assert not compile_module(five, CORE).warnings


def loops(module):
    return [each for each in module.operations if each.opcode == "while"]


def test_work_stands_at_the_lines_of_the_functions(provider, xla):
    kept = loop(xla, 3, while_loop)
    sync()
    assert kept["left"].item() == 0
    (each,) = loops(provider.last)
    condition, body = (
        {provider.last.framework[row].stack[0].line for op in region.operations for row in op.framework}
        for region in each.regions
    )
    assert condition == {line_of("condition")}
    assert line_of("step") in body


class Repeated(nn.Module):
    """PyTorch's loop over a layer."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, left, value):
        def step(left, value):
            return left - 1, torch.tanh(self.layer(value))  # line: layer

        return while_loop_of_torch(lambda left, value: left > 0, step, (left, value))


@pytest.mark.parametrize("compiled", [False, True])
def test_the_loop_of_pytorch_is_one(provider, xla, compiled):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Repeated()
    value = torch.ones(2, 8)
    with torch.no_grad():
        expected = value
        for _ in range(3):
            expected = torch.tanh(model.layer(expected))
        model.to(xla)
        called = torch.compile(model, backend="openxla", fullgraph=True) if compiled else model
        left, found = called(torch.tensor(3).to(xla), value.to(xla))
        sync()
    (each,) = loops(provider.last)
    lines = {
        provider.last.framework[row].stack[0].line
        for op in each.regions[1].operations
        for row in op.framework
    }
    assert line_of("layer") in lines
    assert each.attributes["trip_count"] == 3
    assert left.item() == 0
    torch.testing.assert_close(found.cpu(), expected)


def test_numbers_that_are_carried_are_counted_trip_by_trip(xla):
    torch._dynamo.reset()
    count, value = while_loop_of_torch(
        lambda at, value: at < 3, lambda at, value: (at + 1, value * 2), (0, torch.ones(2).to(xla))
    )
    assert (count, value.tolist()) == (3, [8, 8])


def test_gradients_are_refused(xla):
    torch._dynamo.reset()
    value = torch.ones(2).to(xla).requires_grad_()
    with pytest.raises(XlaError, match="No gradients pass through while_loop on xla"):
        while_loop_of_torch(
            lambda left, value: left > 0,
            lambda left, value: (left - 1, value * 2),
            (torch.tensor(2).to(xla), value),
        )


def carry_on(xla, step, condition=lambda left, value: left > 0):
    return while_loop(condition, step, (torch.tensor(2).to(xla), torch.ones(2).to(xla)))


def test_what_is_carried_must_stay_alike(xla):
    with pytest.raises(ValueError, match=r"function of while_loop .* of \[2\] .torch.float32. to carry"):
        carry_on(xla, lambda left, value: (left - 1, value[:1]))


def test_the_condition_gives_one_truth_value(xla):
    with pytest.raises(ValueError, match=r"gives a tensor of \[2\] .torch.bool."):
        carry_on(xla, lambda left, value: (left - 1, value), lambda left, value: value > 0)
    with pytest.raises(ValueError, match="and gives True"):
        carry_on(xla, lambda left, value: (left - 1, value), lambda left, value: True)


def test_a_write_to_what_is_not_carried_is_refused(xla):
    kept = torch.zeros(2).to(xla)
    with pytest.raises(ValueError, match="function of while_loop writes in place"):
        carry_on(xla, lambda left, value: (left - 1, value + kept.add_(1)))


def test_a_loop_within_a_loop_is_refused(xla):
    def step(left, value):
        return left - 1, carry_on(xla, lambda inner, other: (inner - 1, other * 2))[1] + value

    with pytest.raises(XlaError, match="while_loop within another loop"):
        carry_on(xla, step)


def test_what_is_handed_through_is_a_value_of_its_own(xla):
    start = torch.ones(2).to(xla)
    _, last = while_loop(
        lambda left, value: left > 0, lambda left, value: (left - 1, value), (torch.tensor(2).to(xla), start)
    )
    last.add_(1)
    assert (start.tolist(), last.tolist()) == ([1, 1], [2, 2])
