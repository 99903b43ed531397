import json
import math

import numpy as np
import pytest

from benchmarks import machine
from benchmarks.__main__ import available_names, main
from benchmarks.figures import Figure, Peer, Target, as_table, fastest_in_turn


@pytest.mark.parametrize(
    ("relation", "value", "holds"),
    [("<=", 2.0, True), ("<=", 2.1, False), (">=", 2.0, True), (">=", 1.9, False), ("<=", math.nan, False)],
)
def test_whether_a_target_holds_is_worked_out(relation, value, holds):
    assert Figure("f", value, "ns", Target(relation, 2)).holds is holds


def test_json_has_the_documented_keys_and_nulls_without_a_peer():
    figure = Figure("added", 5.0, "ns", Target("<=", 10), None, "quick").as_json()
    assert figure == {
        "name": "added",
        "value": 5.0,
        "unit": "ns",
        "target": "<= 10",
        "holds": True,
        "peer": None,
        "peer_value": None,
        "ratio": None,
        "note": "quick",
    }


def test_the_ratio_is_value_by_peer():
    figure = Figure("f", 3.0, "x", peer=Peer("other", 4.0))
    assert figure.as_json()["ratio"] == 0.75
    assert Figure("f", 3.0, "x", peer=Peer("other", 0.0)).ratio is None


def test_numbers_that_are_not_finite_are_null_in_json():
    assert json.loads(json.dumps(Figure("f", math.inf, "x").as_json()))["value"] is None


def test_the_table_marks_what_is_missed():
    rows = as_table([Figure("f", 3.0, "ns", Target("<=", 2)), Figure("g", 1.0, "ns")])
    assert [row[3] for row in rows] == ["NO", ""]


def test_candidates_run_in_turn():
    order = []
    times = fastest_in_turn({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=2)
    assert order == ["a", "b", "a", "b"]
    assert set(times) == {"a", "b"}


def test_an_unknown_benchmark_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["nothing"])
    assert caught.value.code == 2
    assert "capture" in capsys.readouterr().err
    assert "capture" in available_names()


def test_a_numpy_value_is_judged_as_a_number_is():
    assert Figure("x", np.float64(2.0), "us", Target("<=", 1.0)).holds is False
    assert Figure("x", np.float64(0.5), "us", Target("<=", 1.0)).holds is True


def test_absolute_targets_are_scaled_by_the_speed_of_the_machine():
    reference = machine.Machine(python=1.0, compiled=1.0, copy=1.0)
    slow = machine.Machine(python=2.0, compiled=4.0, copy=1.0)
    assert Target("<=", 10, "python").on(slow, reference).limit == 20
    assert Target(">=", 10, "compiled").on(slow, reference).limit == 2.5
    assert Target("<=", 3).on(slow, reference) == Target("<=", 3)
    rate = Figure("rate", 4.0, "M/s", Target(">=", 5, "compiled"))
    assert not rate.holds
    assert rate.on(slow, reference).holds


def test_the_reference_is_read_and_described():
    reference = machine.reference()
    assert reference.python > 0
    assert "python 24.4 ms (1.00 x the reference)" in reference.describe(reference)
