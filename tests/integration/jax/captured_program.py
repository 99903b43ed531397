"""JAX programs run with and without capture, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import neuron_tools
from neuron_tools.profile.reader import Profile
from tests.fixtures import forked_commands

EXAMPLES = Path(__file__).parents[3] / "examples" / "jax"
TIMEOUT_SECONDS = 300


@dataclass(frozen=True)
class Captured:
    """A captured program: what it printed, and its profile."""

    script: Path
    printed: str
    profile: Profile

    def scalar(self, query: str) -> float:
        """The one number that a query gives."""
        (row,) = self.profile.query(query).to_pylist()
        return float(next(iter(row.values())) or 0)

    def line(self, text: str) -> int:
        """Number of the script's first line that contains a text."""
        lines = self.script.read_text().splitlines()
        return 1 + next(index for index, line in enumerate(lines) if text in line)

    def share(self, condition: str) -> float:
        """Part of the device time for which a condition on FrameworkInstruction holds."""
        return self.scalar(
            f"SELECT sum(CASE WHEN {condition} THEN end_ts - start_ts ELSE 0 END) / sum(end_ts - start_ts)"
            " FROM FrameworkInstruction"
        )


def run(command: Sequence[str], folder: Path) -> str:
    """Run a command to its end; its standard output."""
    return output(
        subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, env=environment()
        )
    )


def environment() -> dict[str, str]:
    """Ours, without the platforms that tests of this process choose."""
    return {**os.environ, "JAX_PLATFORMS": ""}


def output(answer: subprocess.CompletedProcess[str]) -> str:
    """Standard output of what went well."""
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def capture(script: Path, folder: Path, *arguments: str, options: Sequence[str] = ()) -> Captured:
    """Capture a script into `folder`."""
    command = ["capture", "-o", "run.nprof", *options, "--", sys.executable, str(script), *arguments]
    answer = forked_commands.neuron_profile(command, folder, environment(), TIMEOUT_SECONDS)
    return Captured(script, output(answer), neuron_tools.open_profile(folder / "run.nprof"))
