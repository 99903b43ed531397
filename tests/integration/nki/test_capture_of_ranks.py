"""`neuron-profile capture` of scripts that run a kernel on several ranks, with collectives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import neuron_tools
from neuron_tools.profile.reader import Profile

KERNEL = """\
import numpy as np
import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl


@nki.jit
def gather(shard, group):
    columns = shard.shape[1]
    own = nl.ndarray(shard.shape, dtype=shard.dtype, buffer=nl.sbuf)
    every = nl.ndarray((128, 4 * columns), dtype=shard.dtype, buffer=nl.sbuf)
    out = nl.ndarray((128, 4 * columns), dtype=shard.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=own, src=shard)
    ncc.all_gather(dsts=[every], srcs=[own], replica_group=group, collective_dim=1)
    nisa.dma_copy(dst=out, src=every)
    return out


group = ncc.ReplicaGroup([[0, 1, 2, 3]])
"""
SCRIPT = f"""\
{KERNEL}
from neuron_tools.nki.ranks import run_ranks
shards = [np.full((128, 64), rank, np.float32) for rank in range(4)]
for run in run_ranks(gather, [(shard, group) for shard in shards]):
    assert np.array_equal(run.outputs, np.concatenate(shards, 1))
"""
PROCESSES = f"""\
import sys
import torch
import torch.distributed as dist
{KERNEL}
way = sys.argv[1]
dist.init_process_group("gloo" if way == "numpy" else "neuron")
shard = torch.full((128, 64), float(dist.get_rank()))
if way == "numpy":
    gathered = gather(shard.numpy(), group)
else:
    import torch_neuronx
    run = torch.compile(lambda a: gather(a, group), backend="neuron") if way == "compiled" else None
    gathered = (run(shard.to("neuron")) if run else gather(shard.to("neuron"), group)).cpu().numpy()
assert np.array_equal(gathered, np.repeat(np.arange(4.0, dtype=np.float32), 64)[None].repeat(128, 0))
"""
RANKS = 4


def captured(folder: Path, script: str, *program: str) -> Profile:
    """The profile of a program that runs a script, checked."""
    (folder / "kernel.py").write_text(script)
    for command in (["capture", "-o", "run.nprof", "--", *program], ["verify", "run.nprof"]):
        answer = subprocess.run(
            [sys.executable, "-m", "neuron_profile.cli", *command],
            cwd=folder, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert answer.returncode == 0, answer.stdout + answer.stderr
    return neuron_tools.open_profile(folder / "run.nprof")


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """The profile of all ranks in one process."""
    return captured(tmp_path_factory.mktemp("ranks"), SCRIPT, sys.executable, "kernel.py")


def rows(profile: Profile, query: str) -> list[dict[str, Any]]:
    """Rows of a query."""
    found: list[dict[str, Any]] = profile.query(query).to_pylist()
    return found


def line(text: str) -> int:
    """Number of the script's line that contains a text."""
    return 1 + next(at for at, line in enumerate(SCRIPT.splitlines()) if text in line)


def test_each_rank_is_an_execution_on_its_own_core_beside_the_others(profile: Profile) -> None:
    (found,) = rows(
        profile,
        "SELECT count(*) AS runs, count(DISTINCT pcore_idx) AS cores, "
        "count(DISTINCT execution_start_ts) AS starts FROM ExecutionInfo WHERE neff_name = 'gather'",
    )
    assert found == {"runs": RANKS, "cores": RANKS, "starts": 1}


def test_each_ranks_collective_names_the_kernels_line(profile: Profile) -> None:
    found = rows(profile, "SELECT operation, source_file, source_line FROM CcOp")
    assert [(row["operation"], Path(row["source_file"]).name, row["source_line"]) for row in found] == [
        ("AllGather", "kernel.py", line("ncc.all_gather("))
    ] * RANKS


def test_every_instruction_names_its_call_and_line(profile: Profile) -> None:
    found = rows(
        profile,
        "SELECT DISTINCT kernel_instruction_name AS call, nki_source_location AS place FROM Instruction",
    )
    wanted = {line("src=shard"), line("ncc.all_gather("), line("src=every")}
    assert {int(row["place"].rsplit(":", 1)[1]) for row in found} == wanted
    assert all(row["call"].startswith("gather.") for row in found)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["numpy", "eager", "compiled"])
def test_ranks_in_processes_take_as_long_as_in_one_each_on_its_core(
    profile: Profile, tmp_path: Path, way: str
) -> None:
    pytest.importorskip("torch")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={RANKS}"]
    found = captured(tmp_path, PROCESSES, *launcher, "kernel.py", way)
    duration = "execution_end_ts - execution_start_ts"
    query = f"SELECT pcore_idx, {duration} AS ns FROM ExecutionInfo ORDER BY pcore_idx"
    assert rows(found, query) == rows(profile, query)
