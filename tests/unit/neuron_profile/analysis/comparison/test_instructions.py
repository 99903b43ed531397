"""Profiles of the device alone are compared by their instructions; the parts add up."""

from __future__ import annotations

import pytest

import neuron_tools
from neuron_profile.analysis.comparison.difference import compare
from neuron_profile.analysis.comparison.instructions import instruction_totals
from neuron_profile.analysis.errors import LacksDataError
from neuron_tools.profile.writer import ProfileWriter
from tests.unit.neuron_profile.analysis.device_only import ROWS, open_device_profile, write_device_profile
from tests.unit.neuron_profile.analysis.traces.tiny_trace import open_trace


def by_operation(totals):
    return {key.operation: total.device_ns for key, total in totals.items() if total.device_ns}


def test_each_moment_belongs_to_what_computes_in_it(tmp_path):
    with open_device_profile(tmp_path) as profile:
        totals, device_ns = instruction_totals(profile)
    # Sync 10-12, Tensor 50-80 and 80-100, Scalar 60-70 beside it, Vector 110-130.
    assert by_operation(totals) == {
        "Sync DMA_TRIGGER": 2,
        "Tensor MATMUL": 50 - 5,
        "Scalar ACTIVATE": 5,
        "Vector TENSOR_COPY": 20,
        "(nothing)": 48,
    }
    assert device_ns == sum(by_operation(totals).values()) == 120


def test_a_longer_matmul_is_the_difference(tmp_path):
    longer = [(*row[:3], row[3], row[4] + 40 * (row[0] == 14)) for row in ROWS]
    (tmp_path / "new").mkdir()
    with (
        open_device_profile(tmp_path) as base,
        neuron_tools.open_profile(write_device_profile(tmp_path / "new", longer)) as new,
    ):
        difference = compare(base, new)
    (changed,) = [delta for delta in difference.deltas if delta.delta_ns]
    assert (changed.key.operation, changed.delta_ns) == ("Vector TENSOR_COPY", 40)
    assert difference.new_device_ns - difference.base_device_ns == 40


def test_a_profile_without_work_on_a_device_is_refused(tmp_path):
    ProfileWriter(tmp_path / "empty.nprof", {"target": "trn2"}).close(True)
    with (
        neuron_tools.open_profile(tmp_path / "empty.nprof") as empty,
        pytest.raises(LacksDataError, match="has no instructions of a device"),
    ):
        compare(empty, empty)


def test_a_trace_of_a_host_alone_is_refused(tmp_path):
    with (
        open_trace(tmp_path, [(0, "aten::mm", "cpu_op", 0, 40, None)]) as trace,
        pytest.raises(LacksDataError, match="has no spans of a device"),
    ):
        compare(trace, trace)


def test_a_trace_is_compared_with_itself_without_difference(tmp_path):
    with open_trace(tmp_path) as trace:
        difference = compare(trace, trace)
    assert difference.base_device_ns == difference.new_device_ns == 260_000
    assert {delta.change for delta in difference.deltas} == {"same"}
