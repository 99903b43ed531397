"""AWS's tutorials, from a fetched copy that `AWS_TUTORIALS` names, give what the CPU gives."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[3] / "scripts"))

import aws_tutorials

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", aws_tutorials.TUTORIALS)
def test_a_tutorial_gives_what_the_cpu_gives_and_its_time_has_lines(name: str) -> None:
    reason = aws_tutorials.missing(name)
    if reason:
        pytest.skip(reason)
    outcome = aws_tutorials.run_tutorial(name)
    assert not outcome.problem
    assert outcome.passed, str(outcome)
    assert outcome.has_lines, str(outcome)
