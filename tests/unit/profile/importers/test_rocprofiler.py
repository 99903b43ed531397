"""rocprofiler's JSON and CSV: dispatches on queues, copies beside them, calls and markers on threads."""

from __future__ import annotations

import json

import pytest

from neuron_tools.profile.importers import TraceError, import_traces
from neuron_tools.profile.verify import verify
from tests.fixtures.profiler_exports import (
    PID,
    ROCPROF_CALLS,
    ROCPROF_COPIES,
    ROCPROF_KERNELS,
    TID,
    rocprofiler_document,
)  # fmt: skip
from tests.unit.profile.importers.importing import imported, rows, written

SPANS = (
    "SELECT t.name AS track, t.device_idx, s.name, s.category, s.start_ts, s.duration_ns, s.correlation_id"
    " FROM TraceSpan s JOIN TraceTrack t USING (process_idx, track_idx) ORDER BY s.start_ts"
)


def test_records_stand_where_they_ran_under_their_names(tmp_path):
    with imported(tmp_path, rocprofiler_document()) as profile:
        found = rows(profile, SPANS)
        process = rows(profile, "SELECT process_id, command, host FROM ProcessInfo")
        devices = rows(profile, "SELECT device_idx, name, compute_unit_count FROM Device")
        assert verify(profile) == []

    assert found == [
        (f"thread {TID}", None, "step 1", "user_annotation", 0, 50, 30),
        (f"thread {TID}", None, "hipLaunchKernel", "hip_runtime", 100, 400, 20),
        ("stream 3", 0, "gemm", "kernel", 1_100, 3_000, 20),
        ("copies", 0, "Memcpy HtoD", "gpu_memcpy", 4_600, 500, 21),
    ]
    assert process == [(PID, "python train.py", "mi300")]
    assert devices == [(0, "AMD Instinct MI300X", 304)]


def test_sizes_are_arguments_and_counters_are_told(tmp_path):
    path = written(tmp_path, "trace", rocprofiler_document())
    report = import_traces([path], tmp_path / "told.nprof")
    with imported(tmp_path, rocprofiler_document()) as profile:
        found = rows(profile, "SELECT arguments_json FROM TraceSpan WHERE category = 'kernel'")

    assert json.loads(found[0][0]) == {
        "device": 0, "queue": 3, "grid": [64, 1, 1], "workgroup": [64, 1, 1],
    }  # fmt: skip
    assert report.warnings == ("trace: 1 records of counter_collection were left out.",)


def test_records_before_their_tables_keep_their_numbers(tmp_path):
    document = rocprofiler_document()
    process = document["rocprofiler-sdk-tool"][0]
    document["rocprofiler-sdk-tool"][0] = {"buffer_records": process["buffer_records"], **process}
    with imported(tmp_path, document) as profile:
        found = rows(profile, "SELECT name FROM TraceSpan WHERE category = 'kernel'")

    assert found == [("kernel 8",)]


def test_csv_of_kernels(tmp_path):
    with imported(tmp_path, ROCPROF_KERNELS.encode()) as profile:
        found = rows(profile, SPANS)
        arguments = rows(profile, "SELECT arguments_json FROM TraceSpan ORDER BY start_ts")

    assert found == [
        ("stream 2", 1, "gemm<float>(float*, int)", "kernel", 0, 3_000, 20),
        ("stream 2", 1, "add", "kernel", 3_500, 500, 21),
    ]
    assert json.loads(arguments[0][0]) == {"grid": [1024, 1, 1], "workgroup": [64, 1, 1]}


def test_names_across_blocks_stay_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("neuron_tools.profile.importers.trace_file.BLOCK_BYTES", 7)
    name = "λ→" * 50
    with imported(tmp_path, ROCPROF_KERNELS.replace('"add"', f'"{name}"').encode()) as profile:
        assert rows(profile, "SELECT name FROM TraceSpan ORDER BY start_ts")[1] == (name,)


def test_csv_of_copies_and_calls(tmp_path):
    with imported(tmp_path, ROCPROF_COPIES.encode(), ROCPROF_CALLS.encode()) as profile:
        found = rows(profile, SPANS.replace("s.start_ts, ", "", 1))

    assert sorted(found, key=str) == sorted(
        [
            ("copies", 1, "Memcpy HtoD", "gpu_memcpy", 3_000, 20),
            (f"thread {TID}", None, "hipLaunchKernel", "hip_runtime", 400, 20),
            (f"thread {TID}", None, "step 1", "user_annotation", 50, 30),
        ],
        key=str,
    )


def test_rows_with_another_number_of_columns_are_told(tmp_path):
    content = (ROCPROF_CALLS + '"HIP_RUNTIME_API","hipFree"\n').encode()
    report = import_traces([written(tmp_path, "trace", content)], tmp_path / "out.nprof")

    assert report.rows["TraceSpan"] == 2
    assert report.warnings == ("trace: Rows with another number of columns were left out.",)


def test_columns_of_one_name_are_one_sentence(tmp_path):
    content = b'"Kind","Start_Timestamp","Kind"\n"KERNEL_DISPATCH",5,1\n'
    with pytest.raises(TraceError, match=r"its columns are not told apart\.$"):
        import_traces([written(tmp_path, "trace", content)], tmp_path / "out.nprof")


def test_a_truth_value_is_no_number_of_a_process(tmp_path):
    document = rocprofiler_document()
    (process,) = document["rocprofiler-sdk-tool"]
    process["metadata"]["pid"] = True
    with imported(tmp_path, document) as profile:
        assert rows(profile, "SELECT DISTINCT process_id FROM ProcessInfo") == [(None,)]
