"""Device time inside kernels by line, once in each file: part of what the calling lines are charged."""

from __future__ import annotations

from typing import Any

import pytest

from neuron_profile.analysis.kernel_charges import find_kernel_lines
from neuron_profile.analysis.source_frames import SourceLine
from neuron_tools import open_profile
from tests.unit.neuron_profile.analysis.kernel_tables import KERNEL, USER, kernel_tables


def test_each_file_has_the_time_at_its_innermost_line(make_profile: Any, tiny_tables: Any) -> None:
    with open_profile(make_profile(tables=kernel_tables(tiny_tables))) as profile:
        found = find_kernel_lines(profile)
    # MATMUL 1010 to 1050 and TENSOR_TENSOR 1030 to 1060 share 20 ns.
    expected = {SourceLine(KERNEL, 7): 30, SourceLine(KERNEL, 8): 20, SourceLine(USER, 5): 20}
    assert {row.place: row.device_ns for row in found} == pytest.approx(expected)
    assert found[0].place == SourceLine(KERNEL, 7)


def test_what_is_no_kernel_has_no_lines(make_profile: Any) -> None:
    with open_profile(make_profile()) as profile:
        assert find_kernel_lines(profile) == ()
