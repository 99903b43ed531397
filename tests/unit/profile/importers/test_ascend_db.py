"""Databases of Ascend profilers: tasks, collectives and calls where they ran, linked by their connection."""

from __future__ import annotations

import json

from neuron_profile.analysis.traces.breakdown import break_down
from neuron_tools.profile.importers import import_traces
from neuron_tools.profile.verify import verify
from tests.fixtures.profiler_exports import PID, TID, ascend_export
from tests.unit.profile.importers.importing import imported, rows, written

SPANS = (
    "SELECT t.name AS track, t.kind, s.name, s.category, s.start_ts, s.duration_ns, s.correlation_id"
    " FROM TraceSpan s JOIN TraceTrack t USING (process_idx, track_idx) ORDER BY s.start_ts, s.duration_ns"
)


def test_tasks_collectives_and_calls_stand_where_they_ran(tmp_path):
    with imported(tmp_path, ascend_export()) as profile:
        found = rows(profile, SPANS)
        process = rows(profile, "SELECT process_id, rank, host FROM ProcessInfo")
        devices = rows(profile, "SELECT device_idx, name FROM Device")
        assert verify(profile) == []

    thread = (f"thread {TID}", "thread")
    assert found == [
        ("steps", "thread", "ProfilerStep#50", "user_annotation", 0, 9_000, None),
        (*thread, "aten::mm", "cpu_op", 900, 800, None),
        (*thread, "aclnnMatmul_launch", "cann", 1_000, 400, 7),
        ("stream 2", "stream", "aclnnMatmul", "kernel", 2_000, 3_000, 7),
        ("collectives", "stream", "hcom_allReduce__865_0_1", "communication", 5_400, 700, 9),
        ("stream 4", "stream", "SDMA", "communication", 5_500, 500, None),
        ("stream 4", "stream", "EVENT_WAIT", "sync", 6_000, 500, None),
        ("stream 2", "stream", "MEMCPY_ASYNC", "gpu_memcpy", 7_000, 200, None),
    ]
    assert process == [(PID, 3, "node7")]
    assert devices == [(0, "Ascend910B")]


def test_device_time_is_divided_by_what_the_tasks_are(tmp_path):
    with imported(tmp_path, ascend_export()) as profile:
        (device,) = break_down(profile).devices
    assert (device.computing_ns, device.exposed_communication_ns) == (3_000, 700)
    assert (device.exposed_memory_ns, device.idle_ns) == (200, 1_300)


def test_shapes_and_algorithms_are_arguments(tmp_path):
    query = "SELECT name, arguments_json FROM TraceSpan WHERE name IN ('aten::mm', 'hcom_allReduce__865_0_1')"
    with imported(tmp_path, ascend_export()) as profile:
        found = {name: json.loads(text) for name, text in rows(profile, query)}
    assert found == {
        "aten::mm": {"Sequence number": 12, "Fwd thread id": 0, "Input Dims": "4,8;8,2"},
        "hcom_allReduce__865_0_1": {"count": 4096, "algorithm": "RING"},
    }


def test_memory_is_a_counter_and_tables_that_are_not_read_are_named(tmp_path):
    query = (
        "SELECT t.name, t.unit, c.value FROM TraceCounter c JOIN TraceTrack t USING (process_idx, track_idx)"
    )
    with imported(tmp_path, ascend_export()) as profile:
        found = sorted(rows(profile, query))
    report = import_traces([written(tmp_path, "trace", ascend_export())], tmp_path / "again.nprof")
    name = "NPU 0: memory_record: PTA"
    assert found == [
        (f"{name} totalAllocated", "bytes", 512.0),
        (f"{name} totalReserved", "bytes", 2_048.0),
    ]
    assert report.warnings == ("trace: Tables that are not read were left out: HBM.",)


def test_rows_without_a_time_are_told_of(tmp_path):
    calls = (
        "startNs INTEGER, endNs INTEGER, globalTid INTEGER, connectionId INTEGER, name INTEGER",
        [(None, 5, 1, 7, 7), ("soon", 5, 1, 7, 7)],
    )
    export = ascend_export(CANN_API=calls, HBM=None)
    report = import_traces([written(tmp_path, "trace", export)], tmp_path / "out.nprof")
    assert report.warnings == ("trace: Rows of CANN_API without a time were left out.",)
