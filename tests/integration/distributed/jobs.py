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
