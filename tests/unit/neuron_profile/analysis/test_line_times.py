"""The time beside each line of a file: the same in the Explorer, in the editor and for agents."""

from __future__ import annotations

from typing import Any

import pytest

from neuron_explorer.api.source_costs import read_source_costs
from neuron_profile.agents import costs
from neuron_profile.analysis.line_times import LineTimes
from neuron_profile.analysis.overview import make_overview
from neuron_tools import open_profile
from tests.unit.neuron_profile.analysis.kernel_tables import KERNEL, kernel_tables


def test_a_line_inside_a_kernel_that_runs_operations_too_has_what_it_is_charged():
    assert LineTimes({3: 5.0}, {3: 2.0, 4: 1.0}).shown == {3: 5.0, 4: 1.0}


def test_a_kernels_file_has_the_same_times_everywhere(make_profile: Any, tiny_tables: Any) -> None:
    text = {"path": [KERNEL], "sha256": ["00"], "text": ["\n" * 9]}
    with open_profile(make_profile(tables={**kernel_tables(tiny_tables), "SourceFile": text})) as profile:
        overview = make_overview(profile)
        explorer = LineTimes.of(overview.hotspots, overview.kernel_lines, KERNEL).shown
        editor = read_source_costs(profile).files[KERNEL].total
        agent = costs.lines(profile, KERNEL, 1, 0)["rows"]
    assert explorer == pytest.approx({7: 30, 8: 20})
    assert {line: work.device_ns for line, work in editor.items()} == pytest.approx(explorer)
    assert {row["line"]: row["device_ns"] for row in agent if "device_ns" in row} == pytest.approx(explorer)
