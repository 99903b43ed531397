"""Tables of PyTorch's profiler by the device's name."""

from __future__ import annotations

import pytest
import torch
from torch.profiler import ProfilerActivity, profile


@pytest.mark.parametrize("column", ["self_{}_time_total", "{}_time_total", "{}_time", "self_{}_memory_usage"])
def test_a_script_sorts_by_the_type_of_its_device(column: str) -> None:
    values = torch.ones(8, 8, device="neuron")
    activities = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
    with profile(activities=activities, profile_memory=True) as profiled:
        (values @ values).sum().item()
    averages = profiled.key_averages()
    assert averages.table(sort_by=column.format(values.device.type)) == averages.table(
        sort_by=column.format("privateuse1")
    )
    for event in averages:
        assert getattr(event, column.format("neuron")) == getattr(event, column.format("device"))
