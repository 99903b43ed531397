"""Simulated profiles say where the chip's time is expected; measured ones do not."""

from __future__ import annotations

from pathlib import Path

import pytest

import neuron_tools
from neuron_profile.analysis.comparison.difference import Difference
from neuron_profile.analysis.expected import find_expected, is_beyond_doubt
from neuron_profile.reports.difference_text import as_markdown
from neuron_tools.hardware.prediction_errors import expected_factors
from tests.unit.neuron_profile.analysis.device_only import open_device_profile
from tests.unit.neuron_profile.tiny_profile import MakeProfile


def test_total_and_lines_have_a_range(make_profile: MakeProfile) -> None:
    with neuron_tools.open_profile(make_profile()) as profile:
        found = find_expected(profile)
    factors = expected_factors()
    assert found is not None
    for row in (found, *found.lines):
        assert row.low_ns == pytest.approx(row.device_ns * factors.low)
        assert row.high_ns == pytest.approx(row.device_ns * factors.high)
    assert found.lines
    assert sum(line.device_ns for line in found.lines) <= found.device_ns


def test_what_was_measured_has_no_range(tmp_path: Path) -> None:
    with open_device_profile(tmp_path) as profile:
        assert find_expected(profile) is None


@pytest.mark.parametrize("factor", [0.5, 0.95, 1.05, 2])
def test_a_small_difference_is_told_to_be_small(factor: float) -> None:
    difference = Difference(1_000_000, round(1_000_000 * factor), 0, 0, (), is_predicted=True)
    assert is_beyond_doubt(1_000_000, 1_000_000 * factor) == (factor in (0.5, 2))
    assert ("by less than either prediction" in as_markdown(difference, 5)) == (factor in (0.95, 1.05))
