"""States of a traced model stay on the device: a call copies its inputs and results alone."""

from __future__ import annotations

import pytest

from neuron_profile.analysis.transfers import measure_host_transfers
from tests.integration.capture.programs import Folder, breaches

pytestmark = pytest.mark.slow

DECODE = """
import torch
import torch_neuronx

class Cache(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.window = torch.nn.Parameter(torch.zeros(256, 1024), requires_grad=False)

    def forward(self, value):
        window = torch.cat([self.window[1:], value])
        return window.sum(0), window

model = Cache()
traced = torch_neuronx.trace(model, torch.ones(1, 1024), input_output_aliases={model.window: 1})
for number in range(4):
    total, _ = traced(torch.full((1, 1024), float(number)))
    assert total[0] == sum(range(number + 1)), total
"""
STATE_BYTES, ROW_BYTES = 256 * 1024 * 4, 1024 * 4


def test_a_call_copies_no_state(folder: Folder) -> None:
    folder.capture(DECODE, "--target", "inf2", "--host-clock", "fixed")
    profile = folder.profile()
    assert breaches(profile) == []
    copies = measure_host_transfers(profile)
    assert (copies.to_device_count, copies.to_device_bytes) == (5, STATE_BYTES + 4 * ROW_BYTES)
    assert (copies.to_host_count, copies.to_host_bytes) == (4, 4 * ROW_BYTES)
