"""Graphs that are captured once and replayed."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from neuron_tools.device.errors import GraphCaptureError


def captured(work):
    graph = torch.neuron.NeuronGraph()
    with torch.neuron.graph(graph):
        result = work()
    return graph, result


def test_a_replay_computes_on_what_its_inputs_hold_now():
    x = torch.zeros(4, device="neuron")
    graph, y = captured(lambda: (x + 1).t().mul(3))
    x.fill_(2)
    graph.replay()
    assert y.tolist() == [9.0] * 4
    x.fill_(-1)
    graph.replay()
    assert y.tolist() == [0.0] * 4


def test_capturing_changes_nothing_from_before():
    x = torch.zeros(4, device="neuron")
    state = torch.neuron.get_rng_state()
    graph, _ = captured(lambda: x.add_(torch.rand(4, device="neuron")))
    assert x.tolist() == [0.0] * 4
    assert torch.equal(state, torch.neuron.get_rng_state())
    graph.replay()
    first = x.clone()
    graph.replay()
    assert first.abs().sum() > 0
    assert not torch.equal(x, first * 2)  # each replay draws anew


def trained(device, steps, *, by_graph):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = torch.zeros(3, 4, device=device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    graph, loss = captured(step) if by_graph else (None, None)
    losses = []
    for number in range(steps):
        batch.copy_(torch.full((3, 4), float(number)))
        if graph is None:
            loss = step()
        else:
            graph.replay()
        losses.append(loss.item())
    return losses, [parameter.detach().cpu() for parameter in model.parameters()]


def test_a_whole_training_step_replays_as_it_runs():
    expected, parameters = trained("cpu", 3, by_graph=False)
    found, others = trained("neuron", 3, by_graph=True)
    assert found == pytest.approx(expected, rel=1e-5)
    for one, other in zip(parameters, others, strict=True):
        torch.testing.assert_close(one, other)


def test_the_graph_of_any_accelerator_is_this_one():
    x = torch.zeros(4, device="neuron")
    graph = torch.accelerator.Graph()
    with torch.Stream(device="neuron"), graph:
        x += 1
    assert x.tolist() == [0.0] * 4
    graph.replay()
    assert x.tolist() == [1.0] * 4


def test_reading_a_value_while_capturing_is_refused_and_ends_the_capture():
    x = torch.ones(4, device="neuron")
    with pytest.raises(GraphCaptureError, match="reads values of the device"):
        captured(lambda: x.add_(1).sum().item())
    assert x.tolist() == [1.0] * 4
    assert not torch.neuron.is_current_stream_capturing()


def test_wrong_orders_are_refused():
    graph = torch.neuron.NeuronGraph()
    with pytest.raises(RuntimeError, match="nothing to replay"):
        graph.replay()
    with pytest.raises(RuntimeError, match="not being captured"):
        graph.capture_end()
    graph.capture_begin()
    with pytest.raises(RuntimeError, match="captured already"):
        torch.neuron.NeuronGraph().capture_begin()
    assert torch.neuron.is_current_stream_capturing()
    graph.reset()


def test_a_captured_graph_is_written(tmp_path):
    x = torch.zeros(4, device="neuron")
    graph, _ = captured(lambda: x + 1)
    graph.debug_dump(str(tmp_path / "graph.txt"))
    assert "aten.add.Tensor" in (tmp_path / "graph.txt").read_text()


def test_graphed_modules_give_the_same_values_and_gradients():
    torch.manual_seed(0)
    model = nn.Linear(4, 2).to("neuron")
    x = torch.ones(3, 4, device="neuron")
    expected = model(x).sum()
    (gradient,) = torch.autograd.grad(expected, [model.weight])
    graphed = torch.neuron.make_graphed_callables(model, (x,))
    loss = graphed(x).sum()
    loss.backward()
    assert loss.item() == pytest.approx(expected.item())
    torch.testing.assert_close(model.weight.grad, gradient)
