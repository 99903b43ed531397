"""`neuron-profile capture` of a script that runs a kernel on several ranks, with collectives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import neuron_tools
from neuron_tools.profile.reader import Profile

SCRIPT = """\
import numpy as np
import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl
from neuron_tools.nki.ranks import run_ranks


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
shards = [np.full((128, 64), rank, np.float32) for rank in range(4)]
for run in run_ranks(gather, [(shard, group) for shard in shards]):
    assert np.array_equal(run.outputs, np.concatenate(shards, 1))
"""
RANKS = 4


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """The profile of the script."""
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "kernel.py").write_text(SCRIPT)
    for command in (
        ["capture", "-o", "run.nprof", "--", sys.executable, "kernel.py"],
        ["verify", "run.nprof"],
    ):
        answer = subprocess.run(
            [sys.executable, "-m", "neuron_profile.cli", *command],
            cwd=folder, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert answer.returncode == 0, answer.stdout + answer.stderr
    return neuron_tools.open_profile(folder / "run.nprof")


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
