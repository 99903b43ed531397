"""Training on the device `xla`: a step is one execution; one that compiles each time is found first."""

from __future__ import annotations

import pytest

from neuron_profile.analysis.advice.advise import advise
from tests.integration.capture.programs import Folder, breaches, rows

pytestmark = pytest.mark.slow

TRAIN = """
import torch
import torch_xla.core.xla_model as xm
from torch_xla.distributed.parallel_loader import MpDeviceLoader
device = xm.xla_device()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [torch.ones(SIZE, 16) for number in range(5)]
for inputs in MpDeviceLoader(batches, device):
    optimizer.zero_grad()
    loss = model(inputs).square().sum()
    loss.backward()
    xm.optimizer_step(optimizer)
print(loss.item())
"""


def test_a_step_is_one_execution_with_lines(folder: Folder) -> None:
    folder.capture(TRAIN.replace("SIZE", "8"), "--target", "trn1", "--host-clock", "fixed")
    profile = folder.profile()
    assert breaches(profile) == []
    executions = "SELECT count(*), count(DISTINCT executable_idx) FROM ExecutionInfo"
    assert rows(profile, executions)[0][0] == 5
    ((lines, total),) = rows(
        profile, "SELECT count(*) FILTER (stack_frame_ids IS NOT NULL), count(*) FROM Instruction"
    )
    assert lines >= 0.99 * total


def test_a_step_that_compiles_each_time_is_found_first(folder: Folder) -> None:
    folder.capture(TRAIN.replace("SIZE", "8 + number"), "--target", "trn1", "--host-clock", "fixed")
    (first, *_) = advise(folder.profile())
    assert first.rule == "recompilation"
    assert first.title.startswith("The step at ")
    assert "torch.compile" not in first.change
