"""Runs `neuron-profile` as a user does: as a process of its own, in a working directory."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NEURON_PROFILE = [sys.executable, "-m", "neuron_profile.cli"]


@dataclass(frozen=True)
class Workplace:
    """A folder with scripts, and the commands run in it."""

    folder: Path

    def script(self, name: str, text: str) -> Path:
        """Write a script."""
        path = self.folder / name
        path.write_text(text)
        return path

    def run(self, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run `neuron-profile` to its end."""
        return subprocess.run(
            [*NEURON_PROFILE, *map(str, arguments)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            **options,
        )

    def start(self, *arguments: object, **options: Any) -> subprocess.Popen[str]:
        """Start `neuron-profile`, with pipes on its standard streams."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [*NEURON_PROFILE, *map(str, arguments)]
        return subprocess.Popen(command, cwd=self.folder, text=True, **{**pipes, **options})

    def capture(self, *command: object, options: tuple[object, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Capture a command."""
        return self.run("capture", *options, "--", *command)

    def info(self, profile: str) -> dict[str, Any]:
        """What `neuron-profile info --json` says."""
        facts: dict[str, Any] = json.loads(self.run("info", profile, "--json", check=True).stdout)
        return facts

    def query(self, profile: str, sql: str) -> list[dict[str, Any]]:
        """Rows of a query."""
        answer = self.run("query", profile, sql, "--format", "json", check=True)
        rows: list[dict[str, Any]] = json.loads(answer.stdout)
        return rows
