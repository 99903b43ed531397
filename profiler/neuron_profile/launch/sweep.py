"""One layout of a job: captured without values, and its step measured."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from neuron_profile.analysis.job_step import measure_job_step
from neuron_profile.analysis.layouts import Layout, LayoutResult, failure_of, result_of
from neuron_profile.reports.quantities import count
from neuron_tools import open_profile

_OPTIONS = ("--host-clock", "fixed", "--values", "skip")
_RAISED = re.compile(r"^(?:\[rank\d+\]: *)?((?:\w+\.)*\w*(?:Error|Exception): .+)$", re.MULTILINE)
"""The last line of a traceback of Python's, as `torchrun` marks it or not."""


def measure_layout(
    layout: Layout, command: Sequence[str], target: str, folder: Path, tokens_per_step: int | None
) -> LayoutResult:
    """What a layout takes; why not, where the command fails.

    Args:
        folder: Where the profiles stand; a whole one that is there is read again, another refused.
    """
    if layout.problem:
        return failure_of(layout, layout.problem)
    name = "-".join(f"{degree}{number}" for degree, number in layout.degrees)
    profile, log = folder / f"{name}.nprof", folder / f"{name}.log"
    if not profile.exists():
        print(f"neuron-profile: {layout.text}: {count(layout.ranks, 'rank')}", file=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
        status = _capture(layout, command, target, profile, log)
        if status:
            return failure_of(layout, _failure(status, log))
    with open_profile(profile) as opened:
        if not opened.complete or opened.metadata.get("exit_status"):
            return failure_of(layout, f"its capture ended early: remove {profile} to run it again")
        asked = {"command": list(layout.fill(command)), "target": target}
        other = next((name for name, value in asked.items() if opened.metadata.get(name) != value), None)
        if other is not None:
            return failure_of(layout, f"{profile} is of another {other}: remove it or name another folder")
        step = measure_job_step(opened)
    if step is None:
        return failure_of(layout, "nothing ran on the device")
    return result_of(layout, step, tokens_per_step)


def _failure(status: int, log: Path) -> str:
    """What a command that failed said last, and where the rest stands."""
    raised = _RAISED.findall(log.read_text(errors="replace"))
    said = f" ({raised[-1]})" if raised else ""
    return f"the command failed with status {status}{said}: see {log}"


def _capture(layout: Layout, command: Sequence[str], target: str, profile: Path, log: Path) -> int:
    chosen = ("-o", str(profile), "--target", target, "--world-size", str(layout.ranks), *_OPTIONS)
    capture = (sys.executable, "-m", "neuron_profile.cli", "capture", *chosen, "--", *layout.fill(command))
    with log.open("wb") as file:
        return subprocess.run(capture, stdout=file, stderr=subprocess.STDOUT, check=False).returncode
