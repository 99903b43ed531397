"""AWS's training tutorials, from a fetched copy that `AWS_TUTORIALS` names, have the CPU's losses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[3] / "scripts"))

import aws_tutorials

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", aws_tutorials.TUTORIALS)
def test_a_tutorial_has_the_losses_of_the_cpu(name: str) -> None:
    reason = aws_tutorials.missing(name)
    if reason:
        pytest.skip(reason)
    outcome = aws_tutorials.run_tutorial(name)
    assert not outcome.problem
    assert outcome.passed, f"device {outcome.figures}, CPU {outcome.expected}"
