"""An imported trace at a glance: devices by name, times, and what was not recorded."""

from __future__ import annotations

from neuron_profile.analysis.overview import make_overview
from neuron_profile.analysis.traces.overview import look_at_trace
from neuron_profile.reports.trace_text import trace_rows, trace_verdict
from neuron_tools.profile.reader import open_profile
from tests.fixtures.gpu_trace import gpu_document, host
from tests.fixtures.profiler_exports import memory_events
from tests.unit.profile.importers.importing import imported


def test_a_gpu_has_its_name_streams_kernels_copies_and_collectives(tmp_path):
    with imported(tmp_path, gpu_document(steps=2)) as profile:
        trace = look_at_trace(profile)
        rows = dict(trace_rows(trace))

    (device,) = trace.devices
    assert (device.name, device.is_named, device.memory_bytes) == (
        "NVIDIA H100 80GB HBM3",
        True,
        85_045_542_912,
    )
    assert (device.streams, device.kernels, device.copies, device.collectives) == (2, 4, 2, 2)
    assert rows["Device"] == (
        "NVIDIA H100 80GB HBM3 (device 0), rank 0: 2 streams, 4 kernels, 2 copies, 2 collectives"
    )
    assert not any("Neuron" in text for row in trace_rows(trace) for text in row)


def test_the_verdict_tells_busy_time_exposed_collectives_and_the_reason_of_idle_time(tmp_path):
    with imported(tmp_path, gpu_document()) as profile:
        trace = look_at_trace(profile)

    assert trace_verdict(trace) == (
        "The device was busy 87.7 % of the time, 48.0 % with collectives alone; "
        "idle time is mostly the host's: the next kernel was not launched yet."
    )


def test_ranks_and_devices_stand_apart(tmp_path):
    other = gpu_document(rank=1)
    for event in other["traceEvents"]:
        event["pid"] = 3 if event["pid"] == 0 else event["pid"]
        if "device" in event.get("args", {}):
            event["args"]["device"] = 3
    with imported(tmp_path, gpu_document(), other) as profile:
        devices = look_at_trace(profile).devices

    assert [(device.process, device.device, device.rank) for device in devices] == [(0, 0, 0), (1, 3, 1)]
    assert [device.time.window_ns for device in devices] == [906_000, 906_000]


def test_what_was_not_recorded_is_told_with_how_to_record_it(tmp_path):
    document = gpu_document()
    del document["deviceProperties"]
    document["traceEvents"] = [e for e in document["traceEvents"] if e.get("cat") != "python_function"]
    for event in document["traceEvents"]:
        event.get("args", {}).pop("Input Dims", None)
    with imported(tmp_path, document) as profile:
        trace = look_at_trace(profile)

    assert [device.name for device in trace.devices] == ["GPU 0"]
    assert {lack.what for lack in trace.lacks} == {
        "device names", "shapes of operators", "source lines and modules", "memory",
    }  # fmt: skip


def test_a_trace_of_the_host_alone_says_so(tmp_path):
    with imported(tmp_path, {"traceEvents": [host("aten::mm", "cpu_op", 0, 8)]}) as profile:
        overview = make_overview(profile)

    assert overview.is_foreign
    assert trace_verdict(overview.trace) == (
        "No device in this trace: 1 span of the host alone; most time in aten::mm (8.00 µs in 1 call)."
    )


def test_a_trace_of_counters_alone_tells_the_highest(tmp_path):
    with imported(tmp_path, memory_events()) as profile:
        overview = make_overview(profile)

    assert overview.is_foreign
    assert trace_verdict(overview.trace) == (
        "Counters alone: memory: allocated was highest with 1.50 kB at 0 ns."
    )
    assert dict(trace_rows(overview.trace))["Highest"] == "memory: allocated: 1.50 kB at 0 ns"


def test_a_capture_is_no_trace(make_profile, tiny_tables):
    with open_profile(make_profile(tables=tiny_tables)) as profile:
        assert look_at_trace(profile) is None
