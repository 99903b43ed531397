"""Snapshots of device memory in PyTorch's form."""

from __future__ import annotations

import pickle

import pytest
import torch
from torch.cuda import _memory_viz


@pytest.fixture
def history():
    memory = torch.neuron.memory
    memory._record_memory_history(clear_history=True)
    yield memory
    memory._record_memory_history(None)


def allocate_in_a_function(count):
    return torch.empty(count, device="neuron")


def named(frames):
    return [frame["name"] for frame in frames]


def test_a_snapshot_holds_what_is_allocated_with_the_line_that_asked(history):
    tensor = allocate_in_a_function(1000)
    address = tensor.untyped_storage().data_ptr()
    (segment,) = [each for each in torch.neuron.memory_snapshot() if each["address"] == address]
    assert segment["total_size"] == segment["blocks"][0]["size"] == 4000
    frame = next(each for each in segment["blocks"][0]["frames"] if each["name"] == "allocate_in_a_function")
    assert frame["filename"] == __file__
    assert frame["line"] == allocate_in_a_function.__code__.co_firstlineno + 1
    assert history._allocation_traceback(address) == segment["frames"]
    assert history._allocation_traceback(1) is None


def test_the_history_tells_each_allocation_and_free_in_turn(history):
    tensor = allocate_in_a_function(8)
    address = tensor.untyped_storage().data_ptr()
    del tensor
    (trace, *_) = history._snapshot()["device_traces"]
    actions = [entry["action"] for entry in trace if entry.get("addr") == address]
    assert actions == ["segment_alloc", "alloc", "free_requested", "free_completed", "segment_free"]
    assert trace[-1]["action"] == "snapshot"
    allocation = next(entry for entry in trace if entry["action"] == "alloc" and entry["addr"] == address)
    assert "allocate_in_a_function" in named(allocation["frames"])


def test_the_oldest_events_go_and_others_are_left_out():
    memory = torch.neuron.memory
    memory._record_memory_history(max_entries=3, clear_history=True, skip_actions=["segment_alloc"])
    try:
        kept = [allocate_in_a_function(8) for _ in range(10)]
        trace = memory._snapshot()["device_traces"][0]
    finally:
        memory._record_memory_history(None)
    assert [entry["action"] for entry in trace] == ["alloc", "alloc", "snapshot"]
    assert trace[1]["addr"] == kept[-1].untyped_storage().data_ptr()


def test_nothing_is_kept_when_it_is_off():
    tensor = allocate_in_a_function(8)
    snapshot = torch.neuron.memory._snapshot()
    assert not any(snapshot["device_traces"])
    address = tensor.untyped_storage().data_ptr()
    assert [each["frames"] for each in snapshot["segments"] if each["address"] == address] == [[]]


def test_without_memory_the_history_says_what_was_asked_for(history):
    torch.neuron.set_per_process_memory_fraction(1e-6)
    try:
        with pytest.raises(torch.neuron.OutOfMemoryError):
            allocate_in_a_function(10_000_000)
    finally:
        torch.neuron.set_per_process_memory_fraction(1.0)
    entry = next(each for each in history._snapshot()["device_traces"][0] if each["action"] == "oom")
    assert entry["size"] == 40_000_000
    assert "allocate_in_a_function" in named(entry["frames"])


def test_pytorchs_own_tools_read_a_dumped_snapshot(history, tmp_path):
    tensor = allocate_in_a_function(1000)
    history._dump_snapshot(str(tmp_path / "snapshot.pickle"))
    snapshot = pickle.loads((tmp_path / "snapshot.pickle").read_bytes())
    assert "Active Memory Timeline" in _memory_viz.trace_plot(snapshot)
    assert "allocate_in_a_function" in _memory_viz.memory(snapshot, format_flamegraph=str)
    assert "segments: " in _memory_viz.segsum(snapshot)
    assert f"cudaMalloc({tensor.untyped_storage().data_ptr()}, 3.9KiB)" in _memory_viz.trace(snapshot)


@pytest.mark.parametrize("wrong", [{"enabled": "some"}, {"context": "some"}], ids=str)
def test_a_wrong_word_is_refused(wrong):
    with pytest.raises(ValueError, match="'some': give None"):
        torch.neuron.memory._record_memory_history(**wrong)


def test_the_allocators_figures_are_told_apart_by_size():
    torch.neuron.reset_peak_memory_stats()
    before = torch.neuron.memory_stats()
    large = allocate_in_a_function(1 << 20)
    after = torch.neuron.memory_stats()
    grown = {name for name in after if name.endswith(".current") and after[name] > before[name]}
    assert {"allocated_bytes.large_pool.current", "segment.all.current", "active.large_pool.current"} <= grown
    assert not any("small_pool" in name for name in grown)
    assert after["allocated_bytes.all.current"] - before["allocated_bytes.all.current"] == large.nbytes
    assert (
        torch.accelerator.memory_stats()["segment.large_pool.current"] == after["segment.large_pool.current"]
    )


def test_every_figure_of_cudas_is_there():
    counts = ("allocation", "segment", "active", "inactive_split")
    sums = ("allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes")
    asked = {
        f"{name}.{pool}.{kind}"
        for name in (*counts, *sums)
        for pool in ("all", "large_pool", "small_pool")
        for kind in ("current", "peak", "allocated", "freed")
    } | {"num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free"}
    assert asked <= set(torch.neuron.memory_stats())
