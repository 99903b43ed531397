"""Exports of Nsight Systems: rows on their streams and threads, and databases that are none or hostile."""

from __future__ import annotations

import gzip
import json
import sqlite3

import pytest

from neuron_tools.profile.importers import TraceError, import_traces
from neuron_tools.profile.verify import verify
from tests.fixtures.profiler_exports import GLOBAL_TID, PID, SESSION_NS, TID, nsys_export
from tests.unit.profile.importers.importing import imported, rows, written

SPANS = (
    "SELECT t.name AS track, t.kind, t.device_idx, s.name, s.category, s.start_ts, s.duration_ns,"
    " s.correlation_id"
    " FROM TraceSpan s JOIN TraceTrack t USING (process_idx, track_idx) ORDER BY s.start_ts"
)


def test_kernels_copies_calls_and_ranges_stand_where_they_ran(tmp_path):
    with imported(tmp_path, nsys_export()) as profile:
        found = rows(profile, SPANS)
        process = rows(profile, "SELECT process_id, name, start_unix_ns FROM ProcessInfo")
        devices = rows(profile, "SELECT device_idx, name, memory_bytes, compute_unit_count FROM Device")
        assert verify(profile) == []

    thread = (f"thread {TID}", "thread", None)
    stream = ("stream 13", "stream", 0)
    assert found == [
        (*thread, "train", "user_annotation", 0, 800, None),
        (*thread, "aten::mm", "cpu_op", 50, 500, None),
        (*thread, "cudaLaunchKernel_v7000", "cuda_runtime", 100, 400, 7),
        (*thread, "cudaMemcpyAsync", "cuda_runtime", 600, 100, 8),
        (*thread, "mark", "user_annotation", 750, 0, None),
        (*stream, "gemm<float>(float*)", "kernel", 1_100, 3_000, 7),
        (*stream, "Memcpy HtoD", "gpu_memcpy", 4_600, 500, 8),
    ]
    assert process == [(PID, "python", SESSION_NS + 900), (None, "GPUs", SESSION_NS + 900)]
    assert devices == [(0, "NVIDIA H100 80GB HBM3", 85_000_000_000, 132)]


def test_sizes_of_kernels_and_copies_are_arguments_as_torch_profiler_calls_them(tmp_path):
    query = (
        "SELECT category, arguments_json FROM TraceSpan WHERE arguments_json IS NOT NULL ORDER BY start_ts"
    )
    with imported(tmp_path, nsys_export()) as profile:
        found = [(category, json.loads(text)) for category, text in rows(profile, query)]

    assert found == [
        ("cpu_op", {"Sequence number": 12}),
        ("kernel", {"device": 0, "stream": 13, "grid": [4, 2, 1], "block": [128, 1, 1],
                    "registers per thread": 64, "shared memory": 1024}),
        ("gpu_memcpy", {"device": 0, "stream": 13, "bytes": 4096}),
    ]  # fmt: skip


def test_metrics_of_the_gpus_are_counters(tmp_path):
    with imported(tmp_path, nsys_export()) as profile:
        found = rows(
            profile,
            "SELECT t.name, t.unit, c.value FROM TraceCounter c JOIN TraceTrack t"
            " USING (process_idx, track_idx) ORDER BY c.timestamp",
        )

    name = "GPU 0: SMs Active [Throughput %]"
    assert found == [(name, "%", 40.0), (name, "%", 90.0)]


def test_tables_that_are_not_read_are_named_once(tmp_path):
    report = import_traces([written(tmp_path, "trace", nsys_export())], tmp_path / "out.nprof")

    assert report.formats[str(tmp_path / "trace")] == "Nsight Systems"
    assert report.warnings == ("trace: Tables that are not read were left out: SCHED_EVENTS.",)


def test_older_exports_without_processes_stay_one_process(tmp_path):
    kernels = ("start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER,"
               " shortName INTEGER", [(2_000, 5_000, 0, 7, 7, 3)])  # fmt: skip
    export = nsys_export(
        CUPTI_ACTIVITY_KIND_KERNEL=kernels, CUPTI_ACTIVITY_KIND_MEMCPY=None, NVTX_EVENTS=None,
        PROCESSES=None, GPU_METRICS=None, TARGET_INFO_SESSION_START_TIME=None,
    )  # fmt: skip
    with imported(tmp_path, export) as profile:
        processes = rows(profile, "SELECT DISTINCT process_idx FROM TraceSpan")
        kernel = rows(profile, "SELECT name, start_ts FROM TraceSpan WHERE category = 'kernel'")

    assert processes == [(0,)]
    assert kernel == [("gemm", 1_000)]


def test_values_of_another_type_become_null_and_rows_without_a_time_are_told(tmp_path):
    calls = ("start, end, globalTid, correlationId, nameId",
             [("soon", 5, GLOBAL_TID, 1, 1), (1_000, b"late", GLOBAL_TID, 2.5, "x")])  # fmt: skip
    path = written(tmp_path, "trace", nsys_export(CUPTI_ACTIVITY_KIND_RUNTIME=calls, SCHED_EVENTS=None))
    report = import_traces([path], tmp_path / "out.nprof")

    assert report.warnings == ("trace: Rows of CUPTI_ACTIVITY_KIND_RUNTIME without a time were left out.",)


def test_packed_exports_are_read(tmp_path):
    with imported(tmp_path, gzip.compress(nsys_export())) as profile:
        assert rows(profile, "SELECT count(*) AS n FROM TraceSpan") == [(7,)]


def test_another_database_is_one_sentence(tmp_path):
    path = tmp_path / "trace"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE people (name TEXT)")
    database.close()

    with pytest.raises(
        TraceError, match=r"is a SQLite database without a trace \(its tables: people\): import"
    ):
        import_traces([path], tmp_path / "out.nprof")


def test_views_and_functions_of_a_database_are_never_run(tmp_path):
    path = written(tmp_path, "trace", nsys_export(CUPTI_ACTIVITY_KIND_MEMCPY=None, SCHED_EVENTS=None))
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start FROM n"
    with sqlite3.connect(path) as database:
        database.execute(f"CREATE VIEW CUPTI_ACTIVITY_KIND_MEMCPY AS {endless}")
        database.execute("CREATE TABLE OSRT_API (a, start AS (length(hex(zeroblob(a)))))")
        database.execute("INSERT INTO OSRT_API VALUES (10)")
    database.close()

    report = import_traces([path], tmp_path / "out.nprof")

    assert report.rows["TraceSpan"] == 6


def test_a_schema_that_is_no_text_is_one_sentence(tmp_path):
    content = nsys_export().replace(b"CREATE TABLE", b"CREATE \xffABLE", 1)
    with pytest.raises(TraceError, match=r"is damaged \(its text is no UTF-8\): export it again\.$"):
        import_traces([written(tmp_path, "trace", content)], tmp_path / "out.nprof")
