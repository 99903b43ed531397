"""Runs distributed jobs of a few processes, captured or not."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from pathlib import Path

TIMEOUT_S = 400
# Below those that Linux gives to whoever asks for just any (man 7 ip, ip_local_port_range).
CHOSEN_PORTS = range(10_000, 32_768)


def free_port() -> int:
    """A port of the loopback interface that nobody gets by chance before a job listens on it."""
    while True:
        port = secrets.choice(CHOSEN_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def torchrun(script: Path, processes: int, *arguments: str) -> list[str]:
    """The command that runs a script on so many processes; each job finds its own port."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node"]
    return [*launcher, str(processes), str(script), *arguments]


LAUNCHER = """
import os, subprocess, sys
port, count = sys.argv[1], int(sys.argv[2])
job = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(count)}
ranks = [
    subprocess.Popen(
        [sys.executable, *sys.argv[3:]],
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
    return [sys.executable, str(launcher), str(free_port()), str(processes), str(script), *arguments]


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
