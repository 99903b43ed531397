"""Processes that a benchmark measures in, and environments with other software to compare with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any


def run_module(name: str, *arguments: str) -> dict[str, Any]:
    """What a module prints when it runs in a process of its own; see `run_json`."""
    return run_json([sys.executable, "-m", name, *arguments])


def run_json(command: list[str]) -> dict[str, Any]:
    """The last line of a command's output, which is a JSON object; compiled loops run on one thread."""
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def peer_python(folder_name: str, *requirements: str) -> Path | None:
    """Python of an environment with other software, made in the user's cache when first needed.

    Returns:
        None where it cannot be made.
    """
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "neuron-tools" / "benchmarks" / folder_name
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "--quiet", *requirements]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return None
        (folder / "complete").touch()
    return python
