"""Traced models of several ranks: a collective in them is an operation of the artifact, and gives values."""

import subprocess
import sys

import pytest
from torch import fx, nn

from neuron_tools.frontends.torch_trace.collectives import scriptable

PROGRAM = """
from pathlib import Path

import torch
import torch_neuronx
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_multiprocessing as xmp
from torch import nn

from neuron_tools.neff import read_neff


class Part(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)


class Rows(Part):
    def forward(self, x):
        return xm.all_reduce(xm.REDUCE_SUM, torch.relu(x) @ self.weight)


class Columns(Part):
    def forward(self, x):
        return xm.all_gather(torch.relu(x) @ self.weight, dim=1)


def run(rank):
    generator = torch.Generator().manual_seed(0)
    weight, x = torch.randn(8, 4, generator=generator), torch.randn(3, 8, generator=generator)
    cases = {
        "all_reduce": (Rows(weight.chunk(2)[rank]), x.chunk(2, 1)[rank].contiguous()),
        "all_gather": (Columns(weight.chunk(2, 1)[rank]), x),
    }
    for opcode, (part, example) in cases.items():
        folder = f"FOLDER/{opcode}{rank}"
        traced = torch_neuronx.trace(part, example, compiler_workdir=folder)
        torch.jit.save(traced, f"{folder}/model.pt")
        for model in (traced, torch.jit.load(f"{folder}/model.pt")):
            for factor in (1, 2):
                torch.testing.assert_close(model(factor * example), torch.relu(factor * x) @ weight)
        (collective,) = read_neff(Path(folder, "graph.neff")).program.collectives
        assert (collective.name, collective.group) == (opcode, (0, 1))


if __name__ == "__main__":
    xmp.spawn(run, nprocs=2)
"""


@pytest.mark.slow
def test_two_ranks_give_what_the_whole_model_gives(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("FOLDER", str(tmp_path)))
    command = [sys.executable, "-m", "neuron_tools", str(program)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_a_model_without_collectives_stays_itself():
    module = fx.symbolic_trace(nn.ReLU())
    assert scriptable(module) is module
