"""How `scripts/torchneuron_tests.py` counts pytest's reports."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

import torchneuron_tests

REPORT = """<testsuites><testsuite>
<testcase name="a"/>
<testcase name="b"><skipped type="pytest.xfail" message="known"/></testcase>
<testcase name="c"><skipped type="pytest.skip" message="none"/></testcase>
<testcase name="d"><failure message="AssertionError: 3">f.py:1
E   AssertionError: 3 of 0x7f
</failure></testcase>
<testcase name="e"><failure message="AssertionError: 4"/></testcase>
<testcase name="f"><error message="collection failure">E   ModuleNotFoundError: no x</error></testcase>
</testsuite></testsuites>
"""


def test_cases_are_counted_as_they_ended_and_failures_by_their_message(tmp_path):
    path = tmp_path / "views.xml"
    path.write_text(REPORT)
    report = torchneuron_tests.read_report(path)
    assert report.row("views") == "| views | 2 | 2 | 1 | 1 |"
    assert report.messages == {
        "AssertionError: N of N": 1,
        "AssertionError: N": 1,
        "ModuleNotFoundError: no x": 1,
    }
    board = torchneuron_tests.scoreboard({"views": report})
    assert "| views | 2 | 2 | 1 | 1 |" in board
    assert "     1 ModuleNotFoundError: no x" in board


def test_without_a_checkout_it_says_what_to_set(capsys, monkeypatch):
    monkeypatch.delenv("TORCHNEURON_TESTS", raising=False)
    assert torchneuron_tests.main([]) == 2
    assert "TORCHNEURON_TESTS" in capsys.readouterr().out


def test_a_folder_that_is_not_there_is_refused(tmp_path, capsys, monkeypatch):
    (tmp_path / "tests").mkdir()
    monkeypatch.setenv("TORCHNEURON_TESTS", str(tmp_path))
    assert torchneuron_tests.main(["vews", "--results", str(tmp_path)]) == 2
    assert "has no vews" in capsys.readouterr().out


def test_a_folder_whose_process_ended_early_is_named(tmp_path, capsys, monkeypatch):
    (tmp_path / "tests" / "views").mkdir(parents=True)
    monkeypatch.setenv("TORCHNEURON_TESTS", str(tmp_path))
    monkeypatch.setattr(torchneuron_tests, "run", lambda *_: None)
    assert torchneuron_tests.main(["views", "--results", str(tmp_path)]) == 1
    assert "views: pytest ended without a report" in capsys.readouterr().out


def test_what_has_a_report_is_not_run_again(tmp_path, capsys, monkeypatch):
    (tmp_path / "tests" / "views").mkdir(parents=True)
    (tmp_path / "views.xml").write_text(REPORT)
    monkeypatch.setenv("TORCHNEURON_TESTS", str(tmp_path))
    assert torchneuron_tests.main(["--results", str(tmp_path)]) == 0
    assert "| views | 2 |" in capsys.readouterr().out
