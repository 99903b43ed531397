"""The critical path of a trace, moment by moment."""

from __future__ import annotations

from neuron_profile.analysis.traces.critical_path import find_trace_path
from tests.unit.neuron_profile.analysis.traces.tiny_trace import COMPUTE, REDUCE, ROWS, THREAD, open_trace


def entries(path):
    return {(entry.resource, entry.operation): int(entry.path_ns) // 1000 for entry in path.entries}


def test_the_path_of_the_tiny_trace(tmp_path):
    with open_trace(tmp_path) as profile:
        path = find_trace_path(profile)
    assert entries(path) == {
        ("stream 7", "gemm"): 80,  # 220-300
        ("launch", "gemm"): 5,  # 215-220
        ("thread 1", "aten::mm"): 5 + 40 - 5,  # 210-215, 0-40 without its two calls
        ("thread 1", ""): 10 + 10,  # 200-210, 40-50
        ("thread 1", "cudaDeviceSynchronize"): 10,  # 190-200
        ("stream 20", REDUCE): 110,  # 80-190
        ("launch", REDUCE): 28,  # 52-80
        ("thread 1", "all_reduce"): 2,  # 50-52
        ("thread 1", "cudaLaunchKernel"): 5,
    }
    assert path.total_ns == sum(entry.path_ns for entry in path.entries) == 300_000


def test_kernels_behind_each_other_are_followed_on_their_stream(tmp_path):
    rows = [
        (THREAD, "cudaLaunchKernel", "cuda_runtime", 0, 2, 1),
        (THREAD, "cudaLaunchKernel", "cuda_runtime", 2, 4, 2),
        (COMPUTE, "first", "kernel", 5, 50, 1),
        (COMPUTE, "second", "kernel", 52, 80, 2),
    ]
    with open_trace(tmp_path, rows) as profile:
        path = find_trace_path(profile)
    assert entries(path) == {
        ("stream 7", "first"): 45,
        ("stream 7", "second"): 28,
        ("launch", "first"): 5,
        ("between device spans", "second"): 2,
    }


def test_a_host_without_a_device_is_its_own_path(tmp_path):
    with open_trace(tmp_path, ROWS[:1]) as profile:
        path = find_trace_path(profile)
    assert entries(path) == {("thread 1", "aten::mm"): 40}
