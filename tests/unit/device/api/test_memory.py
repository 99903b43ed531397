"""Counters of device memory."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize("name", ["allocated_bytes", "reserved_bytes", "active_bytes"])
def test_counters_stand_under_cudas_names_and_under_torchneurons(name):
    torch.neuron.reset_peak_memory_stats()
    kept = torch.ones(1024, device="neuron")
    stats = torch.neuron.memory_stats()
    assert stats[name] == {
        kind: stats[f"{name}.all.{kind}"] for kind in ("current", "peak", "allocated", "freed")
    }
    assert stats[name]["current"] >= kept.nbytes
    assert stats[name]["peak"] >= stats[name]["current"]


def test_allocations_and_frees_are_counted():
    torch.neuron.reset_accumulated_memory_stats()
    tensor = torch.ones(16, device="neuron")
    assert torch.neuron.memory_stats()["allocation_requests"] == 1
    del tensor
    assert torch.neuron.memory_stats()["num_tensor_frees"] == 1


def test_a_summary_names_the_device():
    kept = torch.ones(1024, device="neuron")
    summary = torch.neuron.memory_summary()
    assert "Neuron Memory Summary, Device 0" in summary
    assert len(torch.neuron.memory_summary(abbreviated=True)) <= len(summary)
    del kept
