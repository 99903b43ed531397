"""torch.profiler shows device work in its own trace and tables."""

import json

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from neuron_tools.device import native

ACTIVITIES = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]


def train():
    layer = torch.nn.Linear(8, 4, device="neuron")
    layer(torch.ones(2, 8).to("neuron")).sum().backward()


def trace_of(profiler, folder):
    profiler.export_chrome_trace(str(folder / "trace.json"))
    return json.loads((folder / "trace.json").read_text())["traceEvents"]


@pytest.fixture
def timed():
    native.start_timing(lambda name, arguments: (1, 7_000, 0))
    yield
    native.stop_recording()


def test_device_rows_have_the_simulated_durations(timed, tmp_path):
    with profile(activities=ACTIVITIES) as profiler:
        train()
    kernels = [event for event in trace_of(profiler, tmp_path) if event.get("cat") == "kernel"]
    assert {"aten::addmm", "aten::sum.dim_IntList", "aten::mm"} <= {event["name"] for event in kernels}
    assert {event["dur"] for event in kernels} == {7.0}
    assert {event["args"]["simulated"] for event in kernels} == {True}


def test_device_rows_are_linked_to_the_operation_that_started_them(timed, tmp_path):
    with profile(activities=ACTIVITIES) as profiler:
        train()
    events = trace_of(profiler, tmp_path)
    operations = {
        event["args"]["External id"]: event["name"] for event in events if event.get("cat") == "cpu_op"
    }
    kernel = next(
        event for event in events if event.get("cat") == "kernel" and event["name"] == "aten::addmm"
    )
    assert operations[kernel["args"]["External id"]] == "aten::addmm"


def test_tables_have_device_columns(timed):
    with profile(activities=ACTIVITIES) as profiler:
        train()
    row = next(row for row in profiler.key_averages() if row.key == "aten::addmm" and row.device_time_total)
    assert row.self_device_time_total == pytest.approx(7.0)  # PyTorch subtracts times since the start
    assert "Self NEURON" in profiler.key_averages().table()


def test_copies_have_rows_of_their_own(timed, tmp_path):
    with profile(activities=ACTIVITIES) as profiler:
        torch.ones(250).to("neuron").cpu()
    copies = [event for event in trace_of(profiler, tmp_path) if event.get("cat") == "gpu_memcpy"]
    assert [event["name"] for event in copies] == ["Memcpy HtoD", "Memcpy DtoH"]
    assert [event["args"]["bytes"] for event in copies] == [1000, 1000]


def test_graphs_have_rows_under_their_names(timed, tmp_path):
    with profile(activities=ACTIVITIES) as profiler:
        native.run_graph(3, 12_000, native.intern_name("forward graph"))
    (graph,) = [event for event in trace_of(profiler, tmp_path) if event.get("cat") == "kernel"]
    assert (graph["name"], graph["dur"]) == ("forward graph", 12.0)


def test_without_virtual_time_rows_are_marked_as_not_simulated(tmp_path):
    with profile(activities=ACTIVITIES) as profiler:
        train()
    kernels = [event for event in trace_of(profiler, tmp_path) if event.get("cat") == "kernel"]
    assert {event["args"]["simulated"] for event in kernels} == {False}


def test_sources_and_device_rows_together_do_not_fail(timed):
    with profile(activities=ACTIVITIES, with_stack=True, record_shapes=True) as profiler:
        train()
    assert len(profiler.key_averages()) > 5
