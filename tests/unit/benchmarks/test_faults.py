"""Programs with a planted fault: constants, mended twins, and how a case is judged."""

from __future__ import annotations

import pytest

from benchmarks.faults.cases import mended, one_of_each, read_cases, with_constants
from benchmarks.faults.scoreboard import QUICK, Score, figures
from neuron_profile.analysis.advice.advise import RULES
from neuron_profile.analysis.advice.finding import Finding, Place

CASES = read_cases()


def test_a_mended_twin_keeps_its_lines_where_they_are():
    text = "a = 1\n    b = 2  # fault\n    # mended: b = 3\nc = 4\n# mended:\n# added: d = 5\n"
    assert mended(text) == "a = 1\n    b = 3\n\n\n\nd = 5\n"


def test_constants_are_replaced_and_must_exist():
    assert with_constants("A = 1\nB = A\n", {"A": "2"}) == "A = 2\nB = A\n"
    with pytest.raises(ValueError, match="There is no constant C"):
        with_constants("A = 1\n", {"C": "2"})


NOT_YET = {"growing_caches", "tiny_batches", "unfused_attention"}
"""Faults that no rule tells so far: the scoreboard counts them as missed."""


def test_all_programs_and_their_twins_are_python_and_name_rules_that_exist():
    assert {case.family for case in one_of_each(CASES)} >= set(QUICK)
    for case in CASES:
        compile(case.faulty, case.name, "exec")
        compile(case.mended, case.name, "exec")
        assert set(case.rules) <= set(RULES.names()) | NOT_YET, case.name
    assert len({case.faulty for case in CASES}) == len(CASES)


def scored(promised_ns, measured_ns, edited_ns, rule=CASES[0].rules[0]):
    finding = Finding(rule, "", "", Place("faulty.py", CASES[0].line), gain_ns=promised_ns, total_ns=1000)
    return Score(CASES[0], finding, measured_ns, edited_ns, "", edited_ns is not None, 0.0, "")


def test_a_promise_is_compared_with_the_edit_or_else_with_the_twin():
    assert scored(95, 200, 100).gain_error == pytest.approx(0.05)
    assert scored(95, 100, None).gain_error == pytest.approx(0.05)
    assert scored(95, 200, 100).edit_holds
    assert not scored(50, 200, 100).edit_holds


def test_figures_count_what_is_right():
    values = {figure.name: figure.value for figure in figures([scored(95, 100, 96), scored(9, 9, None, "x")])}
    assert values["right cause and line first"] == 0.5
    assert values["gain within 10 %"] == 1.0
    assert values["edits offered"] == 0.5
