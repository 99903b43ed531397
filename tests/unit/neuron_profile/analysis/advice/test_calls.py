"""What the host launched, call by call: runs of equal pieces, and attention among other operators."""

import pytest

from neuron_profile.analysis.advice.line_calls import Call, PlacedCall, _calls_outside, _first_runs
from neuron_profile.analysis.advice.piecewise import pieces_of
from neuron_profile.analysis.advice.rules.unfused_attention import _by_place
from neuron_profile.analysis.advice.rules.unfused_dropout import _by_place as _dropouts
from neuron_profile.analysis.loop_sources import loop_lines
from neuron_profile.analysis.source_frames import SourceFrame


def calls(names, line=7, process=0):
    return [
        PlacedCall("train.py", line, Call(process, f"aten::{name}", False, 10 * at, 10 * at + 5))
        for at, name in enumerate(names.split())
    ]


def test_the_first_piece_of_each_run_is_needed():
    found = pieces_of(iter([calls("mul sub_ " * 4), calls("mul sub_ " * 5)]), 4)
    pieces = found["train.py", 7]
    assert (pieces.pieces, pieces.runs, len(pieces.superfluous)) == (9, 2, 6 + 8)


def test_what_is_done_once_before_the_pieces_is_none():
    (pieces,) = pieces_of(iter([calls("zeros zeros zeros " + "mul sub_ " * 5)]), 4).values()
    assert (pieces.pieces, len(pieces.superfluous)) == (5, 8)


@pytest.mark.parametrize("names", ["mul sub_ mul sub_ mul", "mul sub_ " * 3, "mul"])
def test_what_does_not_repeat_itself_often_enough_is_no_piece(names):
    assert pieces_of(iter([calls(names)]), 4) == {}


@pytest.mark.parametrize(
    ("names", "length"),
    [
        ("bmm div.Tensor _softmax bmm", 4),
        ("addmm bmm mul.Tensor add.Tensor _softmax native_dropout bmm addmm", 6),
        ("baddbmm _softmax mm", 3),
        ("relu copy_ clone bmm _softmax copy_ bmm copy_", 6),
    ],
)
def test_a_softmax_between_products_is_attention(names, length):
    (match,) = _by_place(calls(names))["train.py", 7]
    assert len(match) == length


@pytest.mark.parametrize(
    "names",
    [
        "addmm _softmax",
        "bmm relu _softmax bmm",
        "bmm _softmax addmm",
        "_softmax bmm",
        "bmm mul mul mul mul mul _softmax bmm",
    ],
)
def test_other_softmaxes_are_none(names):
    assert _by_place(calls(names)) == {}


def test_products_of_another_process_do_not_count():
    assert _by_place([*calls("bmm"), *calls("_softmax bmm", process=1)]) == {}


@pytest.mark.parametrize(
    ("names", "length"),
    [
        ("uniform_ gt.Scalar copy_ mul.Tensor div.Tensor mm", 5),
        ("rand lt.Scalar masked_fill.Scalar mul.Tensor relu", 4),
        ("bernoulli_.float div_.Scalar mul.Tensor add.Tensor", 3),
    ],
)
def test_a_random_mask_that_is_applied_is_dropout(names, length):
    (match,) = _dropouts(calls(names))["train.py", 7]
    assert len(match) == length


@pytest.mark.parametrize(
    "names", ["uniform_ mul.Tensor add.Tensor", "uniform_ gt.Scalar mm", "gt.Scalar mul.Tensor"]
)
def test_other_random_numbers_are_none(names):
    assert _dropouts(calls(names)) == {}


TWO_LOOPS = [
    "def run(x, w):",
    "    y = f(x)",
    "    for _ in range(2):",
    "        z = w.cpu()",
    "        g(z)",
]
FRAMES = {
    "main": SourceFrame("train.py", 20, "<module>", ""),
    "before": SourceFrame("train.py", 2, "run", "main"),
    "copy": SourceFrame("train.py", 4, "run", "main"),
    "called": SourceFrame("train.py", 5, "run", "main"),
    "library": SourceFrame("model.py", 7, "g", "called"),
}


@pytest.mark.parametrize(
    ("stacks", "first"),
    [
        ("before copy library copy library before copy library copy", [0, 2]),
        ("copy library copy called copy", [0]),
        ("copy before copy before copy", [0, 1, 2]),
    ],
)
def test_a_loop_begins_again_behind_what_ran_outside_of_it(stacks, first):
    placed = [each._replace(stack=name) for each, name in zip(calls("mm " * 9), stacks.split())]
    starts = [at for at, each in enumerate(placed) if each.stack == "copy"]
    outside = _calls_outside(placed, FRAMES, "train.py", loop_lines(TWO_LOOPS)[4])
    assert list(_first_runs(placed, starts, outside)) == first
