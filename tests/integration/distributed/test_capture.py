"""Captured jobs: one profile of all ranks on one clock, whole also where a rank is lost."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import neuron_tools
from tests.integration.distributed.jobs import capture, free_port, run, separately, torchrun

TRAINING = """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("neuron")
rank = dist.get_rank()
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(64, 64).to("neuron"))
x = torch.ones(64, 64, device="neuron")
for step in range(2):
    for _ in range(20 * rank):
        x = torch.relu(x)
    model(x).sum().backward()
if rank == 0:
    dist.send(x, 1)
else:
    dist.recv(x, 0)
dist.barrier()
dist.destroy_process_group()
"""
FAULTY = """
import datetime, os, signal, sys, torch, torch.distributed as dist
from neuron_tools.device import native
dist.init_process_group("neuron")
x = torch.ones(8, 8, device="neuron")
for step in range(4):
    dist.all_reduce(x)
    torch.neuron.synchronize()
    if step == 2 and sys.argv[1] == "timeout":
        dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=4))
    if step == 2 and dist.get_rank() == 1:
        if sys.argv[1] == "kill":
            native.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        if sys.argv[1] == "mismatch":
            dist.broadcast(x, 0)
        if sys.argv[1] == "timeout":
            try:
                dist.distributed_c10d._get_default_store().get("never")
            except dist.DistError:
                pass  # rank 0, whose store it is, has given up
"""
COLLECTIVES = """
SELECT group_name, replica_group, op_id, count(*) AS parts, count(DISTINCT start_ts) AS starts,
    count(DISTINCT end_ts) AS ends, min(start_ts) - max(trigger_start_ts) AS after_last_ns,
    max(trigger_start_ts) - min(trigger_start_ts) AS spread_ns, max(last_rank) AS last_rank,
    arg_max(rank, trigger_start_ts) AS latest, max(operation) AS operation
FROM CcOp JOIN ProcessInfo USING (process_idx) GROUP BY ALL ORDER BY op_id
"""


HOSTS = """
import torch, torch.distributed as dist
dist.init_process_group("neuron")
x = torch.ones(1 << 16, device="neuron")
for step in range(6):
    for _ in range(100 * dist.get_rank()):
        x = torch.relu(x)
    dist.all_reduce(x)
dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture
def script(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "job.py"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_all_ranks_stand_in_one_profile_on_one_clock(tmp_path, script):
    done = capture(torchrun(script(TRAINING), 2), tmp_path / "job.nprof")
    assert done.returncode == 0, done.stderr[-2000:]
    with neuron_tools.open_profile(tmp_path / "job.nprof") as profile:
        rows = profile.query(COLLECTIVES).to_pylist()
        flows = profile.query("SELECT count(*) AS edges FROM Flow WHERE dependency_type = 'last_rank'")
        ranks = profile.query("SELECT rank FROM ProcessInfo WHERE rank IS NOT NULL ORDER BY rank")
    assert ranks.to_pydict()["rank"] == [0, 1]
    assert {row["operation"] for row in rows} >= {"AllReduce", "Broadcast", "Send", "Barrier"}
    assert all(row["parts"] == 2 and row["starts"] == row["ends"] == 1 for row in rows)
    assert all(row["after_last_ns"] >= 0 for row in rows)
    waited = [row for row in rows if row["operation"] == "AllReduce"]
    assert 1 in {row["last_rank"] for row in waited}
    assert all(row["last_rank"] == row["latest"] for row in waited if row["spread_ns"])
    assert flows.to_pylist()[0]["edges"] >= len(waited)


@pytest.mark.slow
def test_ranks_that_do_not_run_are_simulated_and_told(tmp_path, script):
    done = capture(
        torchrun(script(TRAINING), 2), tmp_path / "job.nprof", "--ranks", "8", "--target", "trn2.48xlarge"
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "8 ranks are simulated and 2 of them ran" in done.stderr.replace("\n", " ")
    with neuron_tools.open_profile(tmp_path / "job.nprof") as profile:
        rows = profile.query(
            "SELECT operation, count(DISTINCT process_idx) AS ranks, max(replica_group) AS members FROM CcOp "
            "GROUP BY operation"
        ).to_pylist()
    reduced = next(row for row in rows if row["operation"] == "AllReduce")
    assert (reduced["ranks"], reduced["members"]) == (8, "[0,1,2,3,4,5,6,7]")


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("kill", "rank 1 has ended; it last took part in collective 2: all_reduce of 64 float32 at job.py:7"),
        pytest.param(
            "mismatch",
            "rank 1 calls broadcast of 64 float32 from rank 0 at job.py:16",
            marks=pytest.mark.slow,
        ),
        pytest.param("timeout", "rank 1 did not come in time", marks=pytest.mark.slow),
    ],
)
def test_a_lost_rank_is_named_and_the_others_profile_is_whole(tmp_path, script, fault, told):
    done = capture(separately(script(FAULTY), 2, fault), tmp_path / "job.nprof")
    assert done.returncode != 0
    assert told in done.stderr
    assert "at job.py:7" in done.stderr
    with neuron_tools.open_profile(tmp_path / "job.nprof") as profile:
        counts = profile.query(
            "SELECT rank, count(*) AS parts FROM CcOp JOIN ProcessInfo USING (process_idx) GROUP BY rank"
        ).to_pylist()
    assert {row["rank"]: row["parts"] for row in counts} == {0: 3, 1: 3}


@pytest.mark.slow
@pytest.mark.parametrize("clock", ["fixed", "measured"])
def test_hosts_captured_apart_become_one_job(tmp_path, script, clock):
    port, path = free_port(), script(HOSTS)
    profiles = [tmp_path / f"host{node}.nprof" for node in range(2)]

    def on_host(node: int) -> str:
        job = ["--nnodes", "2", "--node_rank", str(node), "--nproc_per_node", "1"]
        meeting = ["--master_addr", "127.0.0.1", "--master_port", str(port)]
        launched = [sys.executable, "-m", "torch.distributed.run", *job, *meeting, str(path)]
        done = capture(launched, profiles[node], clock=clock)
        return "" if done.returncode == 0 else done.stderr[-2000:]

    with ThreadPoolExecutor() as hosts:
        assert list(hosts.map(on_host, range(2))) == ["", ""]
    merged = [sys.executable, "-m", "neuron_profile.cli", "merge", *map(str, profiles)]
    done = run([*merged, "-o", str(tmp_path / "job.nprof")], tmp_path)
    assert done.returncode == 0, done.stderr
    with neuron_tools.open_profile(tmp_path / "job.nprof") as profile:
        rows = [row for row in profile.query(COLLECTIVES).to_pylist() if row["operation"] == "AllReduce"]
        known = profile.query(
            "SELECT rank, clock_uncertainty_ns AS error_ns FROM ProcessInfo WHERE rank >= 0 ORDER BY rank"
        ).to_pylist()
    assert [row["rank"] for row in known] == [0, 1]
    assert all(row["error_ns"] is not None and row["error_ns"] < 1_000_000 for row in known)
    assert len(rows) == 6
    assert all(row["parts"] == 2 and row["starts"] == row["ends"] == 1 for row in rows)
    assert {row["last_rank"] for row in rows[1:]} == {1}
