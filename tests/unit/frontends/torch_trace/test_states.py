"""A traced model keeps states from call to call, and does not return them."""

import io

import pytest
import torch
from torch import nn

from neuron_tools.frontends.torch_trace import TraceError, TraceOptions, operator, trace
from neuron_tools.frontends.torch_trace.segments import SegmentRules

INPUT = torch.arange(4.0)


class Cache(nn.Module):
    """Shifts a value into a window, counts calls, and sums the window up; a table never changes."""

    def __init__(self):
        super().__init__()
        self.window = nn.Parameter(torch.zeros(3, 4), requires_grad=False)
        self.register_buffer("calls", torch.zeros(()))
        self.table = nn.Parameter(torch.full((4,), 2.0), requires_grad=False)

    def forward(self, value):
        window = torch.cat([self.window[1:], (value * self.table)[None]])
        return window.sum(0), [self.table, window, self.calls + 1]


def options(model, **others):
    states = {model.window: 2, model.calls: 3, model.table: 1}
    return TraceOptions(states=states, **others)


@pytest.fixture
def traced():
    model = Cache()
    return trace(model, INPUT, options(model))


def reloaded(script):
    buffer = io.BytesIO()
    torch.jit.save(script, buffer)
    buffer.seek(0)
    return torch.jit.load(buffer)


def assert_counts(script):
    """Sums of a window that fills up."""
    for factor in (2, 4, 6, 6):
        total, (table, window, calls) = script(INPUT)
        torch.testing.assert_close(total, INPUT * factor)
        torch.testing.assert_close(total, window.sum(0))
    assert (calls.item(), table.tolist()) == (4, [2.0] * 4)


def test_states_are_kept_from_call_to_call(traced):
    assert_counts(traced)
    window, calls, _ = traced.parameters()
    torch.testing.assert_close(window, (INPUT * 2).expand(3, 4))
    assert calls == 4


def test_a_trace_leaves_the_states_as_they_were(traced):
    assert [state.tolist() for state in traced.parameters()] == [[[0.0] * 4] * 3, 0.0, [2.0] * 4]


def test_each_copy_of_a_model_has_states_of_its_own(traced):
    traced(INPUT)
    other = reloaded(traced)
    traced(INPUT)
    torch.testing.assert_close(other(INPUT)[0], INPUT * 4)
    torch.testing.assert_close(traced(INPUT)[0], INPUT * 6)


def test_a_program_may_write_states(traced):
    for state in traced.parameters():
        state.fill_(1)
    torch.testing.assert_close(traced(INPUT)[0], INPUT + 2)


def test_a_state_made_on_the_host_is_kept_too():
    model = Cache()
    rules = SegmentRules(host_operators=("aten::cat",))
    assert_counts(trace(model, INPUT, options(model, rules=rules)))


def test_a_state_that_models_share_stays_on_the_device(monkeypatch):
    state = torch.zeros(3)
    models = {name: operator.LoadedArtifact(None, None, (), ()) for name in "ab"}
    monkeypatch.setattr(operator, "_loaded", models)
    on_device = operator._resident(models["a"], ~0, state)
    assert operator._resident(models["b"], ~1, state) is on_device
    state.add_(1)
    assert operator._resident(models["b"], ~1, state) is not on_device


def test_what_is_no_state_is_refused():
    model = Cache()
    with pytest.raises(TraceError, match="The state for result 1 of Cache is no parameter"):
        trace(model, INPUT, TraceOptions(states={torch.zeros(3): 1}))
    with pytest.raises(TraceError, match="Cache has 4 results and no number 4"):
        trace(model, INPUT, TraceOptions(states={model.window: 4}))
