"""PyTorch's own function sets the timeouts of neuron groups and of others, without a warning."""

from __future__ import annotations

import warnings
from datetime import timedelta

import pytest
import torch.distributed as dist

from neuron_tools.device.distributed.delegate import GroupDelegate

TIMEOUT = timedelta(seconds=7)


@pytest.mark.parametrize("backend", ["neuron", "cpu:gloo,neuron:neuron", "gloo"])
def test_each_back_end_of_a_group_is_told(backend, monkeypatch):
    told: dict[str, timedelta] = {}
    monkeypatch.setattr(GroupDelegate, "set_timeout", lambda _, timeout: told.update(neuron=timeout))
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            dist.distributed_c10d._set_pg_timeout(TIMEOUT)
        backends = [dist.group.WORLD._get_backend(device) for device in dist.group.WORLD._device_types]
        for each in backends:
            if each.name() == "gloo":
                told["gloo"] = each.options._timeout
    finally:
        dist.destroy_process_group()
    assert told == dict.fromkeys((each.name() for each in backends), TIMEOUT)
