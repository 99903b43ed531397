"""Which calls belong to an optimizer's step: those made in it, not all of the line that called a trainer."""

from types import SimpleNamespace

import pyarrow as pa
import pytest

from neuron_profile.analysis.advice.line_calls import Call, PlacedCall
from neuron_profile.analysis.advice.rules import unfused_updates
from neuron_profile.analysis.advice.rules.unfused_updates import _counters_ns, _Steps

STEPS = pa.table(
    {
        "process": [0, 0, 1],
        "name": ["SGD.step"] * 3,
        "begin_ns": [100, 300, 500],
        "end_ns": [200, 400, 600],
    }
)


@pytest.mark.parametrize(
    ("process", "start_ns", "step"),
    [(0, 100, 0), (0, 190, 0), (0, 350, 1), (0, 50, None), (0, 195, None), (0, 250, None),
     (0, 550, None), (1, 550, 2), (1, 350, None)],
)  # fmt: skip
def test_a_call_belongs_to_the_step_that_it_was_made_in(process, start_ns, step):
    steps = _Steps(SimpleNamespace(profile=SimpleNamespace(query=lambda _: STEPS)))
    assert steps.of(Call(process, "aten::add_", False, start_ns, start_ns + 10)) == step


def test_what_the_fused_form_does_in_addition_is_a_cost(monkeypatch):
    """A counter for each parameter, where two averages are made anyway, and one launch a step to count.

    What others fill is no part of it.
    """
    table = STEPS.set_column(1, "name", pa.array(["AdamW.step", "AdamW.step", "SGD.step"]))
    context = SimpleNamespace(profile=SimpleNamespace(query=lambda _: table))
    made = [(0, 110, "aten::zero_"), (0, 130, "aten::zero_"), (0, 310, "aten::_foreach_add_.Scalar"),
            (0, 220, "aten::zero_"), (1, 510, "aten::zero_")]  # fmt: skip
    calls = [_placed(*each) for each in made]
    passes = {
        ("train.py", 7): [[_placed(0, 310, name), _placed(0, 340, name)] for name in ("mul_", "add_", "mul_")]
    }
    monkeypatch.setattr(unfused_updates, "calls_in_order", lambda _: calls)
    assert _counters_ns(context, _Steps(context), passes) == {("train.py", 7): 10 + 3 * 10}


def _placed(process, start_ns, name):
    return PlacedCall("train.py", 7, Call(process, name, False, start_ns, start_ns + 10), "", "")
