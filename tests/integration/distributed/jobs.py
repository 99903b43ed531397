"""Runs distributed jobs of a few processes, captured or not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TIMEOUT_S = 400


def torchrun(script: Path, processes: int, *arguments: str) -> list[str]:
    """The command that runs a script on so many processes; each job finds its own port."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node"]
    return [*launcher, str(processes), str(script), *arguments]


LAUNCHER = """
import os, socket, subprocess, sys
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
count = int(sys.argv[1])
job = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(count)}
ranks = [
    subprocess.Popen(
        [sys.executable, *sys.argv[2:]],
        env={**os.environ, **job, "RANK": str(rank), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(count)},
    )
    for rank in range(count)
]
sys.exit(max(abs(rank.wait()) for rank in ranks))
"""


def separately(script: Path, processes: int, *arguments: str) -> list[str]:
    """A command that does not end the other ranks where one ends, as torchrun does."""
    launcher = script.with_name("launch.py")
    launcher.write_text(LAUNCHER, encoding="utf-8")
    return [sys.executable, str(launcher), str(processes), str(script), *arguments]


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, its output kept."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def capture(
    command: list[str], profile: Path, *options: str, clock: str = "fixed"
) -> subprocess.CompletedProcess[str]:
    """Capture a command into a profile."""
    captured = [
        sys.executable,
        "-m",
        "neuron_profile.cli",
        "capture",
        "-o",
        str(profile),
        "--host-clock",
        clock,
    ]
    return run([*captured, "--host-clock", clock, *options, "--", *command], profile.parent)
