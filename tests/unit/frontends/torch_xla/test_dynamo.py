"""`torch.compile(backend="openxla")`: a graph of Dynamo's is one execution, with the CPU's values."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from neuron_tools.frontends.torch_hooks import modules
from neuron_tools.frontends.torch_xla import METRICS, sync
from neuron_tools.frontends.torch_xla.dynamo import traced_whole
from neuron_tools.frontends.torch_xla.traced_graph import TracedGraph


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


class Recorder:
    def __init__(self):
        self.number = 0

    def set_module(self, number):
        previous, self.number = self.number, number
        return previous

    def host_now_ns(self):
        return 0

    def record_range(self, *arguments):
        pass

    def name_module(self, *arguments):
        pass


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.norm = nn.BatchNorm1d(16)
        self.last = nn.Linear(16, 4)

    def forward(self, value):
        hidden = torch.relu(self.norm(self.first(value)))  # line: hidden
        return self.last(hidden)


def line_of(comment):
    lines = Path(__file__).read_text().splitlines()
    return next(at for at, text in enumerate(lines, 1) if text.endswith(f"# line: {comment}"))


def train(device, compiled):
    """Losses of a few steps, and the running mean and a gradient behind them."""
    torch.manual_seed(0)
    model = Model().to(device)
    called = compiled(model)
    optimizer = torch.optim.AdamW(model.parameters())
    generator = torch.Generator().manual_seed(0)
    losses = []
    for _ in range(3):
        inputs = torch.randn(6, 8, generator=generator).to(device)
        targets = torch.randint(0, 4, (6,), generator=generator).to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(called(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model.norm.running_mean.cpu(), model.first.weight.grad.cpu()


def openxla(function):
    return torch.compile(function, backend="openxla", fullgraph=True)


def test_losses_gradients_and_buffers_are_the_cpus(xla):
    losses, mean, gradient = train(xla, openxla)
    expected, expected_mean, expected_gradient = train(torch.device("cpu"), lambda model: model)
    assert losses == pytest.approx(expected, rel=1e-6)
    torch.testing.assert_close(mean, expected_mean)
    torch.testing.assert_close(gradient, expected_gradient)


def test_a_step_is_a_forward_and_a_backward_execution_and_what_is_between(counter, xla):
    torch.manual_seed(0)
    model = Model().to(xla)
    compiled, inputs = openxla(model), torch.ones(6, 8).to(xla)
    for _ in range(2):
        model.zero_grad()
        compiled(inputs).sum().backward()
        sync()
    forward, loss, backward, *others = counter.modules.values()
    assert (forward.rsplit("_", 1)[-1], backward.rsplit("_", 1)[-1], others) == ("forward", "backward", [])
    assert loss.startswith("step_")
    assert counter.executions == [1, 2, 3] * 2


def test_each_operation_stands_at_its_line_and_module(provider, xla):
    paths = {}
    remove = modules.install(Recorder(), lambda path, _: paths.setdefault(path, len(paths) + 1))
    try:
        model = Model().to(xla)
        openxla(model)(torch.ones(6, 8).to(xla)).sum().backward()
        sync()
    finally:
        remove()
    rows = [row for module in provider.modules.values() for row in module.framework]
    hidden = [row for row in rows if row.stack and row.stack[0].line == line_of("hidden")]
    assert {row.module_path for row in hidden} == {"Model", "Model.first", "Model.norm"}
    assert {row.backward for row in hidden} == {False, True}
    assert all(row.stack for row in rows if row.backward)
    assert {"Model.last"} == {row.module_path for row in rows if row.backward and "last" in row.module_path}


def test_what_is_written_in_place_is_written(xla):
    def written(value, other):
        value.add_(1)
        return value * other

    before = torch.arange(3.0)
    value, other = before.to(xla), torch.full((3,), 2.0).to(xla)
    assert openxla(written)(value, other).tolist() == [2, 4, 6]
    assert value.tolist() == [1, 2, 3]


def test_random_numbers_are_others_at_each_call_and_those_of_the_seed(xla):
    dropped = openxla(lambda value: nn.functional.dropout(value, 0.5))
    value = torch.ones(64).to(xla)
    torch.manual_seed(0)
    first, second = dropped(value).cpu(), dropped(value).cpu()
    torch.manual_seed(0)
    assert torch.equal(dropped(value).cpu(), first)
    assert not torch.equal(first, second)


def test_what_was_recorded_before_runs_before(counter, xla):
    doubled = openxla(lambda value: value * 2)
    value = torch.ones(3).to(xla) + 1
    assert doubled(value).tolist() == [4, 4, 4]
    assert len(counter.executions) == 2
    assert METRICS.counters["DynamoSyncInputExecuteTime"] == 1


def test_each_shape_has_a_graph_of_its_own(counter, xla):
    doubled = openxla(lambda value: value * 2)
    for size in (3, 5, 3):
        assert doubled(torch.ones(size).to(xla)).tolist() == [2] * size
    assert counter.executions == [1, 2, 1]


def test_symbolic_sizes_are_numbers_of_each_call(counter, xla):
    flat = torch.compile(lambda value: value.view(value.shape[0] * 2) + 1, backend="openxla", dynamic=True)
    for size in (3, 5):
        assert flat(torch.ones(size, 2).to(xla)).tolist() == [2] * 2 * size
    assert len(counter.modules) == 2
    assert METRICS.counters["DynamoExtractCompiledGraph"] == 1


def test_a_look_in_the_middle_is_two_executions(counter, xla):
    def chosen(value):
        return (value * 2).nonzero() + 1

    assert torch.compile(chosen, backend="openxla")(torch.tensor([0.0, 1.0]).to(xla)).tolist() == [[2]]
    assert len(counter.executions) == 2


def test_a_function_of_ours_is_taken_whole(xla):
    @traced_whole
    def scaled(value, by):
        torch._dynamo.graph_break()  # Dynamo would refuse it
        return value * by

    assert openxla(lambda value: scaled(value, 3.0))(torch.ones(2).to(xla)).tolist() == [3, 3]


def test_a_graph_of_fx_can_be_called_by_itself(counter, xla):
    graph = TracedGraph.of_module(torch.fx.symbolic_trace(Model().to(xla).eval()))
    for size in (2, 2, 3):
        assert graph([torch.ones(size, 8).to(xla)]).shape == (size, 4)
    assert counter.executions == [1, 1, 2]


def test_a_tensor_of_the_host_is_warned_of(xla):
    with pytest.warns(RuntimeWarning, match="shape torch.Size\\(\\[2\\]\\) on cpu"):
        assert openxla(lambda value: value * 2)(torch.ones(2)).tolist() == [2, 2]
