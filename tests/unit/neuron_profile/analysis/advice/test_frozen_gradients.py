"""What of a backward pass is made for modules that nobody trains, told from calls and their modules."""

import pytest

from neuron_profile.analysis.advice.line_calls import Call, PlacedCall
from neuron_profile.analysis.advice.rules.frozen_gradients import _superfluous
from neuron_profile.analysis.whatif.executions import Origin

TRAINED = frozenset({"/Model/head"})


def passes(text):
    """Calls "NAME:MODULE" with their origins; those behind "|" are autograd's, which have no line."""
    forward, _, backward = text.partition("|")
    named = [(each, 7) for each in forward.split()] + [(each, 0) for each in backward.split()]
    calls, origins = [], {}
    for at, (each, line) in enumerate(named):
        name, _, module = each.partition(":")
        file = "train.py" if line else ""
        call = Call(0, f"aten::{name}", False, 10 * at, 10 * at + 5)
        calls.append(PlacedCall(file, line, call))
        origins[at] = Origin(f"aten::{name}", module, "train.py", 7)
    return calls, origins


def superfluous(text):
    calls, frozen = _superfluous(*passes(text), TRAINED)
    return [call.name.removeprefix("aten::") for call in calls], {origin.layer for origin in frozen}


def test_all_behind_the_last_trained_module_goes_and_the_gradient_of_its_input():
    names, modules = superfluous(
        "addmm:/Model/body addmm:/Model/head | mul:/train.py mm:/Model/head mm:/Model/head sum:/Model/head "
        "mm:/Model/body sum:/Model/body add_:/train.py"
    )
    assert names == ["mm", "mm", "sum", "add_"]
    assert modules == {"/Model/body"}


@pytest.mark.parametrize(
    "text",
    [
        "addmm:/Model/head | mm:/Model/head sum:/Model/head add_:/train.py",
        "addmm:/Model/body addmm:/Model/head | mm:/Model/body mm:/Model/head sum:/Model/head",
        "addmm:/Other | mm:/Other sum:/Other",
        "addmm:/Model/body addmm:/Model/head",
    ],
    ids=["all trained", "frozen behind", "no optimizer", "no backward pass"],
)
def test_what_is_needed_stays(text):
    assert superfluous(text) == ([], set())
