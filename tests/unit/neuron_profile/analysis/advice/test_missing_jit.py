"""Which function is to be compiled, and which calls are one run of it."""

import numpy as np
import pytest

from neuron_profile.analysis.advice.line_calls import Call, PlacedCall
from neuron_profile.analysis.advice.rules.missing_jit import Site, _is_any_in, _runs, _with_callees
from neuron_profile.analysis.source_frames import SourceFrame

FRAMES = [
    SourceFrame("train.py", 4, "norm", "b"),
    SourceFrame("lib.py", 90, "apply", "c"),
    SourceFrame("train.py", 9, "forward", "d"),
    SourceFrame("train.py", 20, "<module>", ""),
]
FORWARD, OTHER = Site("train.py", 20, "forward"), Site("train.py", 22, "loss")


def calls(stacks, names):
    return [
        PlacedCall("train.py", 1, Call(0, name, False, 10 * at, 10 * at + 5), stack)
        for at, (stack, name) in enumerate(zip(stacks, names))
    ]


def test_each_line_of_the_file_names_the_function_that_it_calls():
    assert list(_with_callees(FRAMES, "train.py")) == [
        Site("train.py", 4, ""), Site("train.py", 9, "norm"), FORWARD,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("stacks", "names", "sizes"),
    [("aaaa", "xyxy", [2, 2]), ("aabaa", "xyzxy", [2, 2]), ("aaab", "xyzw", [3])],
    ids=["repeated", "apart", "once"],
)
def test_a_run_ends_where_others_begin_or_it_repeats_itself(stacks, names, sizes):
    above = {"a": [FORWARD], "b": [OTHER]}
    assert [len(run) for run in _runs(calls(stacks, names), above, FORWARD)] == sizes


@pytest.mark.parametrize(("read_ns", "is_any"), [(12, True), (40, False)])
def test_a_run_that_reads_values_cannot_be_compiled(read_ns, is_any):
    run = [placed.call for placed in calls("aa", "xy")]
    assert _is_any_in({0: np.array([read_ns])}, run) is is_any
