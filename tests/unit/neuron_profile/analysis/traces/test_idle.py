"""Idle time of a stream is told apart by what its next kernel waited for."""

from __future__ import annotations

from neuron_profile.analysis.traces.idle import StreamTime, find_stream_times
from tests.unit.neuron_profile.analysis.traces.tiny_trace import COMPUTE, ROWS, THREAD, open_trace


def test_streams_of_the_tiny_trace(tmp_path):
    with open_trace(tmp_path) as profile:
        compute, communication = find_stream_times(profile)
    # 60-70: gelu was launched at 20; 90-220: gemm only at 215.
    assert compute == StreamTime(0, "GPU 0 / stream 7", 290_000, 150_000, 130_000, 10_000, 0)
    assert communication == StreamTime(0, "GPU 0 / stream 20", 110_000, 110_000, 0, 0, 0)


def test_a_long_gap_after_the_launch_has_another_reason(tmp_path):
    rows = [
        *ROWS,
        (THREAD, "cudaLaunchKernel", "cuda_runtime", 219, 220, 5),
        (COMPUTE, "late", "kernel", 400, 410, 5),
    ]
    with open_trace(tmp_path, rows) as profile:
        compute, _ = find_stream_times(profile)
    assert compute.other_ns == 100_000


def test_a_trace_of_the_host_alone_has_no_streams(tmp_path):
    with open_trace(tmp_path, [row for row in ROWS if row[0] == THREAD]) as profile:
        assert find_stream_times(profile) == ()
