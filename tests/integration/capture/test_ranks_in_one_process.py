"""One model on several NeuronCores of a process: its ranks work at once, and each has its lane."""

from __future__ import annotations

import pytest

from tests.integration.capture.programs import Folder, breaches

pytestmark = pytest.mark.slow

PROGRAM = """
import os
import torch
import torch_neuronx
import torch_xla.core.xla_model as xm
from libneuronxla import neuron_xla_compile
from torch_neuronx.xla_impl.trace import generate_hlo

class Rows(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 512, bias=False)

    def forward(self, rows):
        return xm.all_reduce("sum", [self.linear(rows)], groups=[[0, 1]])[0]

os.environ["WORLD_SIZE"] = "2"
made = generate_hlo(Rows(), (torch.ones(128, 256),))
archive = neuron_xla_compile(made.hlo_module.SerializeToString(), "--target inf2")
model = torch.classes.neuron.SPMDModel(archive, made.metaneff.SerializeToString(), 2, 2)
weights = [{"linear.weight": torch.full((512, 256), value)} for value in (1.0, 2.0)]
model.initialize([], torch.ops.neuron._parallel_load(weights), 0)
for _ in range(3):
    (result,) = model.forward([torch.ones(128, 256)])
    assert torch.equal(result, torch.full((128, 512), 768.0)), result
"""

PROGRAM_OF_EACH_RANK = """
from concurrent.futures import ThreadPoolExecutor
import os
import torch
import torch_neuronx
import torch_xla.core.xla_model as xm
from torch_neuronx.xla_impl.trace import _trace, create_neuron_model

class Rows(torch.nn.Module):
    def __init__(self, rank):
        super().__init__()
        self.linear = torch.nn.Linear(256, 512, bias=False)
        torch.nn.init.constant_(self.linear.weight, 1.0 + rank)

    def forward(self, rows):
        return xm.all_reduce("sum", [self.linear(rows)], groups=[[0, 1]])[0]

os.environ["WORLD_SIZE"] = "2"
rows, models = torch.ones(128, 256), []
for rank in range(2):
    file, described, flat, packed, weights = _trace(
        Rows(rank), (rows,), compiler_workdir=f"rank_{rank}", compiler_args="--target inf2"
    )
    models.append(create_neuron_model(file, described, flat, packed, (rows,), {}, weights))
    torch.ops.neuron._load_collectives_neuron(models[rank].model, rank, 1, rank, 2)
    torch_neuronx.move_trace_to_device(models[rank], rank)
with ThreadPoolExecutor(2) as threads:
    for _ in range(3):
        for result in threads.map(lambda model: model(rows), models):
            assert torch.equal(result.cpu(), torch.full((128, 512), 768.0)), result
"""


@pytest.mark.parametrize("program", [PROGRAM, PROGRAM_OF_EACH_RANK])
def test_the_ranks_of_a_call_run_at_once_on_their_cores(folder: Folder, program: str) -> None:
    folder.capture(program, "--target", "inf2", "--host-clock", "fixed")
    profile = folder.profile()
    assert breaches(profile) == []
    calls = profile.sql(
        "SELECT pcore_idx, execution_start_ts, execution_end_ts FROM ExecutionInfo WHERE neff_name = 'Rows' "
        "ORDER BY 1, 2"
    ).fetchall()
    assert [core for core, _, _ in calls] == [0, 0, 0, 1, 1, 1]
    for (_, start, end), (_, other_start, other_end) in zip(calls[:3], calls[3:]):
        assert max(start, other_start) < min(end, other_end)
    copies = profile.sql(
        "SELECT start_ts FROM SystemProfileEvents WHERE name = 'dmem_buf_copyout' ORDER BY 1"
    ).fetchall()
    ends = [max(end, other_end) for (_, _, end), (_, _, other_end) in zip(calls[:3], calls[3:])]
    assert [start for (start,) in copies] == ends, "results are there when the last rank is done"
