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
