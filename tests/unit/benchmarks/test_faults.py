"""Programs with a planted fault: constants, mended twins, and how a case is judged."""

from __future__ import annotations

import pytest

from benchmarks.faults.cases import mended, one_of_each, read_cases, read_clean, with_constants
from benchmarks.faults.report import page
from benchmarks.faults.scoreboard import QUICK, QUICK_CLEAN, CleanScore, Score, clean_figure, figures, largest
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


def test_all_programs_and_their_twins_are_python_and_name_rules_that_exist():
    assert {case.family for case in one_of_each(CASES)} >= set(QUICK)
    for case in CASES:
        compile(case.faulty, case.name, "exec")
        compile(case.mended, case.name, "exec")
        assert set(case.rules) <= set(RULES.names()), case.name
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


CLEAN = read_clean()


def test_clean_programs_are_python_and_have_no_fault_to_mend():
    assert {case.family for case in CLEAN} >= set(QUICK_CLEAN)
    assert len({case.text for case in CLEAN}) == len(CLEAN) >= 30
    for case in CLEAN:
        compile(case.text, case.name, "exec")
        assert mended(case.text) == case.text


def judged(gain_ns, within_reach=True):
    finding = Finding(
        "spill", "", "", Place("clean.py", 7), gain_ns=gain_ns, total_ns=1000, within_reach=within_reach
    )
    return CleanScore(CLEAN[0], 1000, largest([finding]))


def test_a_clean_program_may_have_small_findings_and_those_of_the_compiler():
    assert [score.is_clean for score in (judged(20), judged(21), judged(500, within_reach=False))] == [
        True, False, True,
    ]  # fmt: skip
    assert clean_figure([judged(20), judged(21)]).value == 0.5


def test_the_page_says_what_a_clean_program_is_accused_of():
    text = page([], [judged(21), judged(0, within_reach=False)])
    assert "**`spill`, line 7: 2.1 %**" in text
    assert "| none |" in text
