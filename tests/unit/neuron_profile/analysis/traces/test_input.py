"""The input pipeline: what the host waits for batches, and whether the device has work meanwhile."""

from __future__ import annotations

from neuron_profile.analysis.traces.input import InputStage, InputStep, find_input
from tests.unit.neuron_profile.analysis.traces.kineto_events import call, document, host, kernel
from tests.unit.profile.importers.importing import imported

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def step(number, at, wait, work):
    """A step of 100 us: a wait for the batch, its copy of 5 us, and work until that long after the start."""
    copied = at + wait + 5
    return [
        host("user_annotation", f"ProfilerStep#{number}", at, 100),
        host("user_annotation", LOADER, at, wait),
        call("cudaMemcpyAsync", at + wait, 2 * number),
        kernel("Memcpy HtoD (Pinned -> Device)", at + wait, 5, 2 * number, "gpu_memcpy"),
        kernel("gemm", copied, at + work - copied, 2 * number + 1),
    ]


def test_each_step_has_its_wait_and_what_the_device_lost(tmp_path):
    busy = kernel("gemm", 95, 15, 99)  # from the first step into the second's wait
    with imported(tmp_path, document(*step(1, 0, 60, 90), busy, *step(2, 100, 20, 100))) as profile:
        found = find_input(profile)
    assert found.steps == (
        InputStep(0, "ProfilerStep#1", 100_000, 60_000, 5000, 65_000, 60_000),
        InputStep(0, "ProfilerStep#2", 100_000, 20_000, 5000, 10_000, 10_000),
    )
    assert found.stages == (InputStage(0, LOADER, 2, 80_000, 60_000),)
    assert (found.duration_ns, found.input_ns, found.copy_ns, found.starved_ns) == (
        200_000, 80_000, 10_000, 70_000,
    )  # fmt: skip


def test_a_trace_without_steps_is_one(tmp_path):
    events = [event for event in step(1, 0, 60, 100) if not event["name"].startswith("ProfilerStep")]
    with imported(tmp_path, document(*events)) as profile:
        (only,) = find_input(profile).steps
    assert only == InputStep(0, "", 100_000, 60_000, 5000, 60_000, 60_000)


def test_threads_that_prepare_batches_are_stages_and_no_waits(tmp_path):
    prepare = {**host("cpu_op", "Iterator::Prefetch::Generator", 0, 95), "tid": 4243}
    with imported(tmp_path, document(*step(1, 0, 60, 90), prepare)) as profile:
        found = find_input(profile)
    assert found.input_ns == 60_000
    assert [stage.stage for stage in found.stages] == ["Iterator::Prefetch::Generator", LOADER]


def test_an_infeed_is_a_wait_of_the_device_where_nothing_else_runs(tmp_path):
    events = [kernel("infeed-start.3", 0, 30, 1), kernel("fusion.1", 20, 80, 2)]
    with imported(tmp_path, document(*events)) as profile:
        (only,) = find_input(profile).steps
    assert (only.copy_ns, only.starved_ns, only.idle_ns) == (30_000, 20_000, 20_000)


def test_without_a_loader_there_is_no_pipeline(tmp_path):
    with imported(tmp_path, document(kernel("gemm", 0, 5, 1))) as profile:
        assert find_input(profile) is None
