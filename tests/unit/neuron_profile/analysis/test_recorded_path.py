"""The path along recorded dependencies, moment by moment."""

from __future__ import annotations

from neuron_profile.analysis.recorded_path import find_recorded_path
from tests.unit.neuron_profile.analysis.device_only import open_device_profile
from tests.unit.neuron_profile.analysis.traces.tiny_trace import open_trace


def test_each_stretch_of_the_path(tmp_path):
    with open_device_profile(tmp_path) as profile:
        path = find_recorded_path(profile)
    assert {(entry.resource, entry.operation): entry.path_ns for entry in path.entries} == {
        ("Vector", "TENSOR_COPY"): 20,
        ("semaphore", "TENSOR_COPY"): 10,
        ("Tensor", "MATMUL"): 50,
        ("semaphore", "MATMUL"): 38,
        ("Sync", "DMA_TRIGGER"): 2,
    }
    assert path.total_ns == 120 == sum(entry.path_ns for entry in path.entries)


def test_a_profile_without_instructions_has_none(tmp_path):
    with open_trace(tmp_path) as profile:
        assert find_recorded_path(profile) is None
