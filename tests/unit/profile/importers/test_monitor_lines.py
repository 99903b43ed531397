"""Monitors' reports as counters."""

from __future__ import annotations

import json

import pytest

from neuron_tools.profile.importers import TraceError, import_traces
from tests.fixtures.foreign_traces import monitor_report
from tests.unit.profile.importers.importing import imported, rows, written

SAMPLES = (
    "SELECT t.name, c.timestamp, c.value FROM TraceCounter c JOIN TraceTrack t USING (process_idx, track_idx)"
    " ORDER BY t.name, c.timestamp"
)


def lines(*reports):
    return "\n".join(json.dumps(report) for report in reports).encode()


def test_each_number_of_a_report_is_a_counter_at_its_period(tmp_path):
    with imported(tmp_path, lines(*(monitor_report(number) for number in range(3)))) as profile:
        found = rows(profile, SAMPLES)
        units = dict(rows(profile, "SELECT name, unit FROM TraceTrack"))

    core = "neuron_runtime_data/train/report/neuroncore_counters/neuroncores_in_use/0/neuroncore_utilization"
    memory = "system_data/memory_info/memory_used_bytes"
    assert found == [
        *((core, number * 1_500_000_000, 10.0 * number) for number in range(3)),
        *((memory, number * 1_500_000_000, 1000.0 + number) for number in range(3)),
    ]
    assert units == {core: "%", memory: "bytes"}


def test_the_parts_of_a_sum_have_its_unit(tmp_path):
    report = monitor_report(1)
    report["system_data"]["memory_info"]["used_bytes"] = {"host": 7, "cache_percent": 3}
    with imported(tmp_path, lines(report)) as profile:
        units = dict(rows(profile, "SELECT name, unit FROM TraceTrack"))
    assert units["system_data/memory_info/used_bytes/host"] == "bytes"
    assert units["system_data/memory_info/used_bytes/cache_percent"] == "%"


def test_a_graph_with_a_time_is_no_report(tmp_path):
    graph = {"schema": "1.1.0", "pid": 5, "time": 1.7e9, "nodes": [{"id": 1, "name": "aten::mm"}]}
    with pytest.raises(TraceError, match="is in no known format"):
        import_traces([written(tmp_path, "trace", graph)], tmp_path / "out.nprof")


def test_flat_reports_with_a_time_stand_on_the_wall_clock(tmp_path):
    reports = [
        {
            "metrics-daemon/timestamp": 1.7e9 + second,
            "metrics-daemon/cuda:0/gpu_utilization (%)/mean": 5 * second,
        }
        for second in (0, 2)
    ]
    with imported(tmp_path, lines(*reports)) as profile:
        found = [row for row in rows(profile, SAMPLES) if "gpu" in row[0]]
        ((start,),) = rows(profile, "SELECT start_unix_ns FROM ProcessInfo")
        ((unit,),) = rows(profile, "SELECT unit FROM TraceTrack WHERE name LIKE '%gpu%'")

    assert [(time, value) for _, time, value in found] == [(0, 0.0), (2_000_000_000, 10.0)]
    assert start == 1_700_000_000_000_000_000
    assert unit == "%"
