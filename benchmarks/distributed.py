"""Collectives on the simulated links, the price of many ranks, and of an all-reduce on this machine."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import neuron_tools
from benchmarks.figures import Figure, Peer, Target
from neuron_tools import hardware

TARGET = "trn2.48xlarge"
RANKS, QUICK_RANKS = (2, 4, 8, 16, 32, 64), (2, 64)
OPERATIONS = ("AllReduce", "AllGather", "ReduceScatter")
LARGE_ELEMENTS, SMALL_ELEMENTS = 16 << 20, 256  # 64 MiB and 1 KiB of float32
SHARE_OF_LIMIT = 0.9
MOST_OF_64_RANKS, MOST_TO_OPEN_S = 3.0, 1.0
CALLS = 200

COLLECTIVES = f"""
import torch, torch.distributed as dist
dist.init_process_group("neuron")
size = dist.get_world_size()
for elements in ({SMALL_ELEMENTS}, {LARGE_ELEMENTS}):
    whole = torch.zeros(elements, device="neuron")
    part = torch.zeros(elements // size, device="neuron")
    for _ in range(2):
        dist.all_reduce(whole)
        dist.all_gather_into_tensor(whole, part)
        dist.reduce_scatter_tensor(part, whole)
dist.destroy_process_group()
"""
STEP = """
import torch, torch.distributed as dist
from torch import nn
dist.init_process_group("neuron")
torch.manual_seed(0)
blocks = [nn.TransformerEncoderLayer(128, 4, 256, batch_first=True) for _ in range(2)]
model = nn.parallel.DistributedDataParallel(nn.Sequential(*blocks).to("neuron"))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(2):
    model(torch.ones(4, 32, 128, device="neuron")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""
CALL_TIME = f"""
import sys, time, torch, torch.distributed as dist
dist.init_process_group(sys.argv[1])
x = torch.zeros(1024, device="neuron" if sys.argv[1] == "neuron" else "cpu")
for _ in range(20):
    dist.all_reduce(x)
best = float("inf")
for _ in range(5):
    begin = time.perf_counter()
    for _ in range({CALLS}):
        dist.all_reduce(x)
    best = min(best, (time.perf_counter() - begin) / {CALLS})
if dist.get_rank() == 0:
    print(best * 1e6)
dist.destroy_process_group()
"""


def run(quick: bool = False) -> list[Figure]:
    """All figures; `quick` looks at the smallest and the largest ring only."""
    with tempfile.TemporaryDirectory(prefix="neuron-distributed-") as text:
        folder = Path(text)
        figures = [
            figure
            for ranks in (QUICK_RANKS if quick else RANKS)
            for figure in bandwidth_figures(folder, ranks)
        ]
        return [*figures, *replication_figures(folder), call_figure(folder)]


def bandwidth_figures(folder: Path, ranks: int) -> list[Figure]:
    """Bus bandwidth of large collectives as a share of the links' limit, and the time of small ones."""
    profile = folder / f"ring-{ranks}.nprof"
    capture(folder, COLLECTIVES, profile, 2, ["--ranks", str(ranks)] if ranks > 2 else [])
    limit = hardware.links(hardware.device(TARGET, lnc=1)).bus_bandwidth(range(ranks))
    with neuron_tools.open_profile(profile) as opened:
        rows = opened.query(
            "SELECT operation, max(bus_bandwidth) AS bandwidth, min(duration_ns) AS shortest_ns FROM CcOp "
            "WHERE framework_name IS NOT NULL GROUP BY operation"
        ).to_pylist()
    by_name = {row["operation"]: row for row in rows}
    shares = {name: by_name[name]["bandwidth"] / limit for name in OPERATIONS}
    return [
        Figure(
            f"least bus bandwidth of {ranks} ranks, 64 MiB", min(shares.values()), "of the limit",
            Target(">=", SHARE_OF_LIMIT), note=f"limit {limit / 1e9:.1f} GB/s",
        ),
        Figure(
            f"largest bus bandwidth of {ranks} ranks, 64 MiB", max(shares.values()), "of the limit",
            Target("<=", 1.0),
        ),
        Figure(f"all-reduce of 1 KiB, {ranks} ranks", by_name["AllReduce"]["shortest_ns"] / 1e3, "us"),
    ]  # fmt: skip


def replication_figures(folder: Path) -> list[Figure]:
    """64 ranks of a small transformer step against 4, in CPU time, and how long the profile takes to open."""
    seconds = {
        ranks: capture(folder, STEP, folder / f"step-{ranks}.nprof", 4, ["--ranks", str(ranks)])
        for ranks in (4, 64)
    }
    begin = perf_counter()
    with neuron_tools.open_profile(folder / "step-64.nprof") as opened:
        tracks = len(opened.tracks())
    opening_s = perf_counter() - begin
    ratio = seconds[64] / seconds[4]
    return [
        Figure("capture of 64 ranks over 4", ratio, "ratio of CPU time", Target("<=", MOST_OF_64_RANKS)),
        Figure(
            "opening 64 ranks",
            opening_s,
            "s",
            Target("<=", MOST_TO_OPEN_S, "python"),
            note=f"{tracks} tracks",
        ),
    ]


def call_figure(folder: Path) -> Figure:
    """What one all-reduce of two processes takes here: neuron tells ranks of each other besides."""
    took_us = {name: float(torchrun(folder, CALL_TIME, 2, [name])) for name in ("neuron", "gloo")}
    return Figure(
        "all_reduce of 4 KiB, 2 processes", took_us["neuron"], "us", peer=Peer("gloo", took_us["gloo"]),
        note="wall time on this machine",
    )  # fmt: skip


def capture(folder: Path, program: str, profile: Path, processes: int, options: list[str]) -> float:
    """Capture a program; returns the CPU seconds of all its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [
        sys.executable, "-m", "neuron_profile.cli", "capture", "-o", str(profile), "--host-clock", "fixed",
        "--target", TARGET, "--lnc", "1", *options, "--",
    ]  # fmt: skip
    _run([*command, *_torchrun(folder, program, processes)])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def torchrun(folder: Path, program: str, processes: int, arguments: list[str]) -> str:
    """Run a program; returns what it printed."""
    return _run([*_torchrun(folder, program, processes), *arguments])


def _torchrun(folder: Path, program: str, processes: int) -> list[str]:
    script = folder / "program.py"
    script.write_text(program, encoding="utf-8")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node"]
    return [*launcher, str(processes), str(script)]


def _run(command: list[str]) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:8])} ...: {done.stderr[-800:]}")
    return done.stdout
