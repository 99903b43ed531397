"""Device time of a trace is divided exactly; kernels are summed by name and kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from neuron_profile.analysis.traces.breakdown import break_down, device_times
from neuron_profile.analysis.traces.device_spans import NOT_LAUNCHED, DeviceSpans
from tests.fixtures.gpu_trace import gpu_document
from tests.unit.neuron_profile.analysis.traces.tiny_trace import COMPUTE, REDUCE, open_trace
from tests.unit.profile.importers.importing import imported


def test_the_window_is_divided(tmp_path):
    with open_trace(tmp_path) as profile:
        (device,) = break_down(profile).devices
    assert device.window_ns == 290_000
    assert device.computing_ns == 150_000  # 10-60, 70-90, 220-300
    assert device.exposed_communication_ns == 100_000  # 90-190
    assert device.exposed_memory_ns == 0
    assert device.idle_ns == 40_000
    assert (device.communication_ns, device.hidden_ns) == (110_000, 10_000)
    assert device.hidden_share == 10 / 110


def test_frames_of_the_host_that_stand_on_a_device_are_no_work(tmp_path):
    document = gpu_document()
    label = {"ph": "M", "name": "process_labels", "pid": 0, "args": {"labels": "GPU 0"}}
    document["traceEvents"].append(label)
    with imported(tmp_path, document) as profile:
        expected = break_down(profile).devices
    frame = {"ph": "X", "cat": "python_function", "name": "threading.py(1032): run", "pid": 0, "tid": 0}
    document["traceEvents"].append(frame | {"ts": document["traceEvents"][0]["ts"], "dur": 10_000})
    (tmp_path / "again").mkdir()
    with imported(tmp_path / "again", document) as profile:
        assert break_down(profile).devices == expected


def test_kernels_by_falling_time(tmp_path):
    with open_trace(tmp_path) as profile:
        kernels = break_down(profile).kernels
    assert [(each.name, each.kind, each.calls, each.total_ns) for each in kernels] == [
        ("gemm", "compute", 2, 130_000),
        (REDUCE, "communication", 1, 110_000),
        ("gelu", "compute", 1, 20_000),
    ]
    assert (kernels[0].shortest_ns, kernels[0].longest_ns, kernels[0].mean_ns) == (50_000, 80_000, 65_000)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(...)", "communication"),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 4>(...)", "communication"),
        ("void deep_ep::internode_ll::dispatch<true, 10, 7168>(...)", "communication"),
        ("void at::native::reduce_kernel<512, 1>(...)", "compute"),
        ("triton_poi_fused_all_reduce_0", "compute"),
        ("triton_red_fused__to_copy_all_gather_into_tensor_mean_wait_tensor_3", "compute"),
        ("void at::native::vectorized_gather_kernel<16, long>(...)", "compute"),
    ],
)
def test_kernels_that_move_data_between_devices_are_communication(name, kind, tmp_path):
    with open_trace(tmp_path, [(COMPUTE, name, "kernel", 10, 60, None)]) as profile:
        assert [kernel.kind for kernel in break_down(profile).kernels] == [kind]


def device_spans(starts, ends, kind):
    """Spans of one stream, without names and launches."""
    nothing = np.zeros(len(starts), np.int64)
    unknown = np.full(len(starts), NOT_LAUNCHED)
    return DeviceSpans(
        nothing, nothing, nothing, starts, ends, kind, nothing, nothing, unknown, unknown, [""]
    )


spans = st.lists(
    st.tuples(st.integers(0, 300), st.integers(1, 60), st.integers(0, 3)), min_size=1, max_size=40
)


@given(spans)
def test_parts_add_up_and_equal_a_count_of_moments(rows):
    starts = np.array([start for start, _, _ in rows], np.int64)
    ends = starts + np.array([length for _, length, _ in rows], np.int64)
    kind = np.array([kind for _, _, kind in rows], np.int64)
    (device,) = device_times(device_spans(starts, ends, kind))
    moments = np.zeros((4, 400), bool)
    for start, end, which in zip(starts, ends, kind):
        moments[which, start:end] = True
    compute, communication, memory = moments[:3]
    assert device.computing_ns == compute.sum()
    assert device.exposed_communication_ns == (communication & ~compute).sum()
    assert device.exposed_memory_ns == (memory & ~communication & ~compute).sum()
    assert device.hidden_ns == (communication & compute).sum()
    parts = device.computing_ns + device.exposed_communication_ns + device.exposed_memory_ns + device.idle_ns
    assert parts == device.window_ns
