"""torch.profiler traces without labels and headers: recognised and put on devices by what stands in them."""

from __future__ import annotations

from neuron_tools.profile.importers import import_traces
from neuron_tools.profile.verify import verify
from tests.fixtures.gpu_trace import GEMM, PID, device, gpu_document, host
from tests.unit.profile.importers.importing import imported, rows

TRACKS = (
    "SELECT t.name, t.kind, t.device_idx, p.name AS parent FROM TraceTrack t LEFT JOIN TraceTrack p"
    " ON p.track_idx = t.parent_track_idx AND p.process_idx = t.process_idx ORDER BY t.track_idx"
)
DEVICE_TRACKS = [
    ("GPU 0", "other", 0, None),
    ("Stream 7", "stream", 0, "GPU 0"),
    ("Stream 20", "stream", 0, "GPU 0"),
]


def bare_document():
    """Events behind `metadata`, with none of the profiler's headers."""
    document = gpu_document()
    return {"metadata": document["metadata"], "traceEvents": document["traceEvents"]}


def test_a_trace_that_begins_with_metadata_is_recognised_by_its_events(tmp_path):
    path = tmp_path / "trace.json"
    with imported(tmp_path, bare_document()) as profile:
        lines = rows(
            profile,
            "SELECT DISTINCT name, source_file, source_line FROM TraceSpan"
            " WHERE source_line IS NOT NULL ORDER BY 1",
        )
    path.write_bytes((tmp_path / "trace0").read_bytes())
    report = import_traces([path], tmp_path / "again.nprof")

    assert report.formats == {str(path): "torch.profiler"}
    assert lines == [
        ("model.py(12): forward", "model.py", 12),
        ("train.py(31): train_step", "train.py", 31),
    ]


def test_an_array_of_torch_events_is_recognised(tmp_path):
    with imported(tmp_path, gpu_document()["traceEvents"]) as profile:
        assert profile.metadata["formats"] == ["torch.profiler"]
        assert rows(profile, TRACKS)[1:] == DEVICE_TRACKS


def test_kernels_without_labels_stand_on_streams_of_their_device(tmp_path):
    with imported(tmp_path, bare_document()) as profile:
        tracks = rows(profile, TRACKS)
        processes = rows(profile, "SELECT process_id FROM ProcessInfo")
        breaches = verify(profile)

    assert tracks == [("Thread 9001", "thread", None, None), *DEVICE_TRACKS]
    assert processes == [(PID,)]
    assert breaches == []


def test_kernels_inside_the_process_of_the_host_stand_on_streams_of_their_device(tmp_path):
    document = bare_document()
    for event in document["traceEvents"]:
        event["pid"] = PID
    with imported(tmp_path, document) as profile:
        assert rows(profile, TRACKS) == [("Thread 9001", "thread", None, None), *DEVICE_TRACKS]


def test_python_frames_on_the_process_of_a_device_stand_on_a_thread_of_the_host(tmp_path):
    document = gpu_document(labels=True)
    frame = {**host("train.py(31): main", "python_function", 0, 9), "pid": 0, "tid": 5}
    document["traceEvents"].append(frame)
    with imported(tmp_path, document) as profile:
        tracks = rows(profile, TRACKS)
        breaches = verify(profile)

    assert tracks == [
        ("Thread 9001", "thread", None, None), *DEVICE_TRACKS, ("Thread 5", "thread", None, None),
    ]  # fmt: skip
    assert breaches == []


def test_kernels_that_do_not_name_their_device_are_on_that_of_their_process(tmp_path):
    kernel = device(GEMM, 10, 5, 1)
    del kernel["args"]["device"]
    with imported(
        tmp_path, {"traceEvents": [host("aten::mm", "cpu_op", 0, 8), {**kernel, "pid": 3}]}
    ) as profile:
        assert rows(profile, TRACKS)[1:] == [("GPU 3", "other", 3, None), ("Stream 7", "stream", 3, "GPU 3")]


def test_launches_keep_their_correlation_and_their_flow(tmp_path):
    with imported(tmp_path, bare_document()) as profile:
        links = rows(
            profile,
            "SELECT a.name, b.name AS kernel, a.correlation_id = b.correlation_id AS same FROM Flow f"
            " JOIN TraceSpan a ON a.id = f.in_id JOIN TraceSpan b ON b.id = f.out_id"
            " WHERE b.correlation_id < 10 ORDER BY b.start_ts",
        )

    assert [(call, same) for call, _, same in links] == [
        ("cudaLaunchKernel", True), ("cudaLaunchKernel", True), ("cudaLaunchKernel", True),
        ("cudaMemcpyAsync", True),
    ]  # fmt: skip


def test_an_npu_has_streams_and_its_counters_none(tmp_path):
    def named(event, pid, tid, name):
        return {"ph": "M", "name": event, "pid": pid, "tid": tid, "args": {"name": name}}

    events = [
        {"ph": "X", "name": "aten::mm", "cat": "cpu_op", "pid": 7, "tid": 7, "ts": 1, "dur": 2},
        named("process_name", 31, 0, "Ascend Hardware"),
        {"ph": "M", "name": "process_labels", "pid": 31, "tid": 0, "args": {"labels": "NPU"}},
        named("thread_name", 31, 2, "Stream 2"),
        {"ph": "X", "name": "MatMulV2", "pid": 31, "tid": 2, "ts": "2.5", "dur": 4},
    ]
    with imported(tmp_path, events) as profile:
        found = rows(
            profile,
            "SELECT s.name, t.kind, t.device_idx FROM TraceSpan s"
            " JOIN TraceTrack t USING (process_idx, track_idx) ORDER BY s.start_ts",
        )

    assert found == [("aten::mm", "thread", None), ("MatMulV2", "stream", 0)]
