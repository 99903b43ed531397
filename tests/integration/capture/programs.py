"""Runs small programs that use the device, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import neuron_tools
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.verify import verify
from tests.fixtures import forked_commands

PYTHON = sys.executable
NEURON_PROFILE = (PYTHON, "-m", "neuron_profile.cli")
TIMEOUT_SECONDS = 240  # of a machine that does much else; on a quiet one each takes a few seconds

TRAIN = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).to("neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.ones(8, 16).to("neuron")
def step():
    loss = model(inputs).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()
"""


@dataclass(frozen=True)
class Folder:
    """A working directory."""

    path: Path

    def write(self, name: str, text: str) -> Path:
        """Write a script."""
        file = self.path / name
        file.write_text(text)
        return file

    def python(self, text: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program."""
        self.write("program.py", text)
        return self.run(PYTHON, "program.py", check=check)

    def capture(
        self, text: str, *options: object, output: str = "run.nprof", check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Capture a program."""
        self.write("program.py", text)
        start = ("capture", "-o", output, *map(str, options))
        return self.neuron_profile(*start, "--", PYTHON, "program.py", check=check)

    def capture_command(self, output: str, *options: object) -> list[str]:
        """The start of a command line that captures."""
        return [*NEURON_PROFILE, "capture", "-o", output, *map(str, options)]

    def neuron_profile(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run one of its commands."""
        answer = forked_commands.neuron_profile([*arguments], self.path, environment(), TIMEOUT_SECONDS)
        assert not check or answer.returncode == 0, answer.stdout + answer.stderr
        return answer

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        answer = subprocess.run(
            command, cwd=self.path, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, env=environment()
        )
        assert not check or answer.returncode == 0, answer.stdout + answer.stderr
        return answer

    def profile(self, name: str = "run.nprof") -> Profile:
        """An open profile."""
        return neuron_tools.open_profile(self.path / name)


def environment() -> dict[str, str]:
    """Ours, on one thread: small programs are fastest so. What crashes says where."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}


def rows(profile: Profile, sql: str) -> list[tuple[Any, ...]]:
    """Rows of a query."""
    return [tuple(row.values()) for row in profile.query(sql).to_pylist()]


def breaches(profile: Profile) -> list[str]:
    """What `verify` finds."""
    return [str(breach) for breach in verify(profile)]


def last_line(text: str) -> str:
    """The last line that a program printed."""
    return text.strip().splitlines()[-1]
