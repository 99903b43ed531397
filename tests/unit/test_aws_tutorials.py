"""Figures of tutorials are compared rank by rank, in the order in which a rank prints them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

import aws_tutorials

SHOWN = r"loss ([\d.]+)"
RANKS = ((1.0, 0.5), (2.0, 0.25))


def test_lines_of_ranks_may_be_mixed() -> None:
    output = "[default1]:loss 2.0\n[default0]:loss 1.0\n[default0]:loss 0.5\nnoise\n[default1]:loss 0.25\n"
    assert aws_tutorials.figures_in(output, SHOWN) == RANKS


def test_lines_without_a_rank_are_of_rank_0() -> None:
    assert aws_tutorials.figures_in("loss 1.0\nloss 0.5\n", SHOWN) == RANKS[:1]


def test_a_silent_rank_is_not_taken_for_another() -> None:
    assert aws_tutorials.figures_in("[default1]:loss 1.0\n", SHOWN) == ((), (1.0,))


@pytest.mark.parametrize(
    ("figures", "passes"),
    [
        (RANKS, True),
        (((1.0001, 0.5), (2.0, 0.25)), True),
        (((0.5, 1.0), (2.0, 0.25)), False),
        (((2.0, 0.25), (1.0, 0.5)), False),
        (((1.0, 0.5, 2.0), (0.25,)), False),
        (((1.0, 0.5),), False),
        (((1.001, 0.5), (2.0, 0.25)), False),
    ],
)
def test_figures_pass_in_their_place_alone(figures: aws_tutorials.Figures, passes: bool) -> None:
    assert aws_tutorials.Outcome("mlp", RANKS, figures).passed is passes


def test_nothing_printed_is_no_pass() -> None:
    assert not aws_tutorials.Outcome("mlp").passed


def test_a_warning_that_names_an_error_is_not_what_ended_a_program() -> None:
    lines = "dill.py:4: PicklingWarning: leads to RecursionError\n[default0]:ValueError: no such shape\n"
    ended = subprocess.CompletedProcess([], 1, "", lines)
    assert aws_tutorials._last_line(ended) == "[default0]:ValueError: no such shape"


@pytest.mark.parametrize(
    ("argument", "status", "said"),
    [
        ("mlp_of_another_name", 2, "No tutorial is named mlp_of_another_name: choose from mlp,"),
        ("--no-such-option", 2, "--no-such-option"),
        ("--help", 0, "Tutorials: mlp,"),
    ],
)
def test_usage_is_told_with_the_tutorials_that_there_are(
    argument: str, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        aws_tutorials.main([argument])
    assert ended.value.code == status
    output = capsys.readouterr()
    assert said in (output.err if status else output.out)
