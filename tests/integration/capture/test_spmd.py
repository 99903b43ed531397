"""One program that is partitioned over the cores of its process: time, memory and a lane of each."""

from __future__ import annotations

import pytest

from tests.integration.capture.programs import Folder, breaches, rows

pytestmark = pytest.mark.slow

PROGRAM = """
import copy
import numpy as np
import torch
import torch_xla.core.xla_model as xm
import torch_xla.distributed.spmd as xs
import torch_xla.runtime as xr
from torch_xla.distributed.parallel_loader import MpDeviceLoader
xr.use_spmd()
cores = xr.global_runtime_device_count()
mesh = xs.Mesh(np.arange(cores), (cores, 1), ("data", "model"))
torch.manual_seed(0)
reference = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256))
model = copy.deepcopy(reference).to(xm.xla_device())
CUT
optimizers = [torch.optim.AdamW(each.parameters(), lr=0.01) for each in (model, reference)]
batches = [torch.randn(64, 256) for _ in range(3)]
loader = MpDeviceLoader(batches, xm.xla_device(), input_sharding=xs.ShardingSpec(mesh, ("data", None)))
for batch, moved in zip(batches, loader):
    losses = []
    for each, values, optimizer in zip((model, reference), (moved, batch), optimizers):
        optimizer.zero_grad()
        loss = each(values).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    assert abs(losses[0].item() - losses[1].item()) < 1e-5
print("held", *(torch.neuron.memory_allocated(core) for core in range(cores)))
"""
WEIGHTS_CUT = """
mesh = xs.Mesh(np.arange(cores), (1, cores), ("data", "model"))
xs.mark_sharding(model[0].weight, mesh, ("model", None))
xs.mark_sharding(model[0].bias, mesh, ("model",))
xs.mark_sharding(model[2].weight, mesh, (None, "model"))
"""
WEIGHT_BYTES = 4 * (2 * 256 * 512 + 256 + 512)
STATES = 4  # the weight, its gradient and two moments


@pytest.mark.parametrize(("cut", "parts"), [("", 1), (WEIGHTS_CUT, 2)])
def test_the_cores_run_one_step_at_once(folder: Folder, cut: str, parts: int) -> None:
    done = folder.capture(PROGRAM.replace("CUT", cut), "--target", "trn1", "--host-clock", "fixed")
    profile = folder.profile()
    assert breaches(profile) == []
    executions = rows(profile, "SELECT pcore_idx, execution_start_ts FROM ExecutionInfo ORDER BY 2, 1")
    assert [core for core, _ in executions] == [0, 1] * 3
    ((lines, total),) = rows(
        profile, "SELECT count(*) FILTER (stack_frame_ids IS NOT NULL), count(*) FROM Instruction"
    )
    assert lines >= 0.99 * total
    assert rows(profile, "SELECT count(*) FROM Instruction WHERE hlo_name LIKE '%all%reduce%'")[0][0] > 0
    held = next(line for line in done.stdout.splitlines() if line.startswith("held")).split()[1:]
    expected = STATES * WEIGHT_BYTES / parts
    assert all(expected <= int(each) <= 1.1 * expected + 64 * 256 * 4 * 2 for each in held)
