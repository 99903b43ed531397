"""Which calls belong to an optimizer's step: those made in it, not all of the line that called a trainer."""

from types import SimpleNamespace

import pyarrow as pa
import pytest

from neuron_profile.analysis.advice.line_calls import Call
from neuron_profile.analysis.advice.rules.unfused_updates import _Steps

STEPS = pa.table({"process": [0, 0, 1], "begin_ns": [100, 300, 500], "end_ns": [200, 400, 600]})


@pytest.mark.parametrize(
    ("process", "start_ns", "is_of_step"),
    [(0, 100, True), (0, 190, True), (0, 350, True), (0, 50, False), (0, 195, False), (0, 250, False),
     (0, 550, False), (1, 550, True), (1, 350, False)],
)  # fmt: skip
def test_a_call_belongs_to_the_step_that_it_was_made_in(process, start_ns, is_of_step):
    steps = _Steps(SimpleNamespace(profile=SimpleNamespace(query=lambda _: STEPS)))
    assert steps.hold(Call(process, "aten::add_", False, start_ns, start_ns + 10)) is is_of_step
