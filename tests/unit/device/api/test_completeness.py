"""`torch.neuron` against `torch.cuda` and `torch.accelerator`."""

from __future__ import annotations

import pytest
import torch

from neuron_tools.device.api import amp
from neuron_tools.device.api.absent import ABSENT


@pytest.mark.parametrize("module", [torch.cuda, torch.cuda.memory], ids=lambda module: module.__name__)
def test_each_public_name_is_there_or_is_refused_with_its_reason(module):
    missing = {name for name in module.__all__ if not hasattr(torch.neuron, name)}
    assert missing <= set(ABSENT)


WITH_ARGUMENTS = ("device_index", "set_device_idx", "set_device_index", "set_stream")


@pytest.mark.filterwarnings("ignore:Use `current_device_index`", "ignore:.*deprecated")
@pytest.mark.parametrize("name", sorted(set(torch.accelerator.__all__) - {*WITH_ARGUMENTS}))
def test_each_function_of_any_accelerator_answers_for_this_one(name):
    assert torch.accelerator.current_accelerator() == torch.device("neuron")
    getattr(torch.accelerator, name)()


def test_devices_and_streams_are_chosen_through_any_accelerator():
    stream = torch.Stream(device="neuron")
    before = torch.accelerator.current_stream()
    try:
        torch.accelerator.set_stream(stream)
        assert torch.accelerator.current_stream() == stream == torch.neuron.current_stream()
    finally:
        torch.accelerator.set_stream(before)
    torch.accelerator.set_device_index(0)
    with torch.accelerator.device_index(0):
        assert torch.accelerator.current_device_index() == torch.neuron.current_device() == 0


def test_no_name_is_both_there_and_called_absent():
    assert [name for name in ABSENT if hasattr(torch.neuron, name)] == []


def test_each_absent_name_is_one_of_cudas():
    assert [name for name in ABSENT if not hasattr(torch.cuda, name)] == []


def test_the_reason_is_told():
    with pytest.raises(AttributeError, match=r"torch\.neuron has no nvtx: .*library of CUDA"):
        _ = torch.neuron.nvtx
    with pytest.raises(AttributeError, match=r"torch\.neuron has no nonsense\.$"):
        _ = torch.neuron.nonsense


def test_nested_statistics_hold_the_flat_ones():
    flat, nested = torch.neuron.memory_stats(), torch.neuron.memory_stats_as_nested_dict()
    for name, value in flat.items():
        if isinstance(value, dict):  # TorchNeuron's groups
            continue
        found = nested
        for part in name.split("."):
            found = found[part]
        assert found == value


def test_a_fraction_of_memory_is_a_limit():
    whole = torch.neuron.get_device_properties().total_memory
    try:
        torch.neuron.set_per_process_memory_fraction(1e-6)
        assert torch.neuron.get_per_process_memory_fraction() == 1e-6
        with pytest.raises(torch.neuron.OutOfMemoryError):
            torch.empty(int(whole * 1e-6) + 4096, dtype=torch.uint8, device="neuron")
    finally:
        torch.neuron.set_per_process_memory_fraction(1.0)
    assert torch.neuron.get_device_properties().total_memory == whole
    with pytest.raises(ValueError, match="give one from 0 to 1"):
        torch.neuron.set_per_process_memory_fraction(1.5)


def test_peers_are_the_other_devices():
    assert torch.neuron.can_device_access_peer(0, 1)
    assert not torch.neuron.can_device_access_peer(0, 0)
    with pytest.raises(AssertionError, match="Invalid device id 99"):
        torch.neuron.can_device_access_peer(0, 99)


def test_autocast_and_the_scaler_know_their_device():
    left = torch.ones(4, 4, device="neuron")
    with amp.autocast():
        assert (left @ left).dtype == torch.bfloat16
    scaler = torch.neuron.amp.GradScaler(init_scale=8.0)
    assert scaler.scale(torch.ones(1, device="neuron")).item() == 8.0
