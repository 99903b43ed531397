"""Triton kernels have the source that their operator names."""

from __future__ import annotations

from neuron_profile.analysis.traces.triton import TritonKernel, find_triton_kernels
from tests.unit.neuron_profile.analysis.traces.kineto_events import call, document, kernel, operator
from tests.unit.profile.importers.importing import imported

NAME, FILE = "triton_poi_fused_add_0", "/tmp/torchinductor_user/qa/cqaokwf2.py"


def launch(start, correlation, name=NAME, file=FILE, **arguments):
    """An operator that launches its kernel through the driver, as PyTorch 2.8 records it."""
    told = {"kernel_hash": "cqaokwf2", "kernel_file": file, "kernel_backend": "triton", "stream": 0}
    return [
        operator(name, start, 20, **told, **arguments),
        call("cuLaunchKernel", start + 5, correlation),
        kernel(name, start + 10, 8, correlation, grid=[100, 1, 1]),
    ]


def test_runs_of_one_source_are_one_row(tmp_path):
    told = {"kernel_kwargs": "XBLOCK=1024", "num_warps": 4, "num_stages": 1, "grid": "grid(100,)"}
    other = launch(200, 3, "triton_red_fused_mean_1", "/tmp/other.py")
    with imported(tmp_path, document(*launch(0, 1, **told), *launch(100, 2, **told), *other)) as profile:
        first, second = find_triton_kernels(profile)
    assert first == TritonKernel(NAME, FILE, "triton", "XBLOCK=1024", "4", "1", "grid(100,)", 2, 0, 16_000)
    assert first.mean_ns == 8000
    assert (second.kernel, second.file, second.warps, second.calls) == (
        "triton_red_fused_mean_1", "/tmp/other.py", "", 1,
    )  # fmt: skip


def test_kernels_that_a_graph_replays_have_the_only_source_of_their_name(tmp_path):
    graph = [call("cudaGraphLaunch", 300, 9), kernel(NAME, 310, 5, 9), kernel("gemm", 320, 50, 9)]
    with imported(tmp_path, document(*launch(0, 1), *graph)) as profile:
        (found,) = find_triton_kernels(profile)
    assert (found.calls, found.replayed, found.device_ns) == (2, 1, 13_000)
    with imported(tmp_path, document(*launch(0, 1), *launch(100, 2, file="/tmp/b.py"), *graph)) as profile:
        kernels = find_triton_kernels(profile)
    assert [(each.file, each.calls, each.replayed) for each in kernels] == [("/tmp/b.py", 1, 0), (FILE, 1, 0)]


def test_without_sources_there_are_no_rows(tmp_path):
    trace = document(operator("aten::mm", 0, 20), call("cudaLaunchKernel", 5, 1), kernel("gemm", 10, 5, 1))
    with imported(tmp_path, trace) as profile:
        assert find_triton_kernels(profile) == ()


def test_the_device_belongs_to_the_process_that_launches(tmp_path):
    """In traces of another process than the profiler's, a mark of that one comes first."""
    mark = {"ph": "X", "cat": "user_annotation", "name": "step", "pid": 1, "tid": 1, "ts": 0, "dur": 900}
    with imported(tmp_path, document(mark, *launch(0, 1))) as profile:
        (found,) = find_triton_kernels(profile)
    assert (found.calls, found.replayed) == (1, 0)
