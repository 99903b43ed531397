"""Tries many inputs of a kind, a thousand in each process, and counts how they ended.

A campaign that is kept in a file can be stopped at any time, and goes on where it was.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

IN_ONE_PROCESS = 1_000
TOGETHER = 25
"""Of kinds whose inputs can be read several as one: so many in a batch, of which one is read alone."""
CHILD = "benchmarks.untrusted_inputs.child"
START_S = 120.0
PATIENCE = 10
MEMORY_FOLDER = Path("/dev/shm")
"""Thousands of small files are made and removed: in memory where there is such a folder."""


@dataclass
class Outcome:
    """What came of the inputs of one kind.

    Attributes:
        tried, read, refused: How many.
        findings: Those that ended in anything but a result or a sentence, each with its input.
        slowest_s: The longest that one took, by the clock.
        peak_bytes: The most memory of a process that read them, beyond what it had before the first.
        children_bytes: The same of the processes that they started.
    """

    kind: str
    seed: int = 0
    tried: int = 0
    read: int = 0
    refused: int = 0
    findings: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    peak_bytes: int = 0
    children_bytes: int = 0


def campaign(
    kind: str, count: int, deadline_s: float, seed: int = 0, *, kept_in: Path | None = None
) -> Outcome:
    """Try `count` inputs of a kind, made from a seed; a process that is over the deadline is ended.

    Args:
        kept_in: A file that holds what came of those tried before, and gets what comes of these.
    """
    outcome = Outcome(kind, seed) if kept_in is None else _kept(kept_in, kind, seed)
    apart = 0
    while outcome.tried < count:
        some = apart or min(IN_ONE_PROCESS, count - outcome.tried)
        apart = _try_some(outcome, some, deadline_s, 1 if apart else TOGETHER)
        if kept_in is not None:
            _keep(kept_in, outcome)
    return outcome


def _kept(file: Path, kind: str, seed: int) -> Outcome:
    for known in json.loads(file.read_text()) if file.exists() else []:
        if (known["kind"], known["seed"]) == (kind, seed):
            return Outcome(**known)
    return Outcome(kind, seed)


def _keep(file: Path, outcome: Outcome) -> None:
    known = json.loads(file.read_text()) if file.exists() else []
    others = [each for each in known if (each["kind"], each["seed"]) != (outcome.kind, outcome.seed)]
    temporary = file.with_name(f"{file.name}.new")
    temporary.write_text(json.dumps([*others, asdict(outcome)], indent=1))
    os.replace(temporary, file)


def _try_some(outcome: Outcome, count: int, deadline_s: float, together: int) -> int:
    """Try some inputs in a process.

    Returns:
        How many of the next are to be tried apart: together, they ended the process.
    """
    place = MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="neuron-untrusted-", dir=place) as name:
        folder = Path(name)
        (folder / "home").mkdir()
        (folder / "work").mkdir()
        numbers = map(str, (outcome.seed, outcome.tried, count))
        command = [sys.executable, "-m", CHILD, outcome.kind, *numbers, str(folder / "work"), str(together)]
        environment = {**os.environ, "HOME": str(folder / "home"), "PYTHONPATH": os.pathsep.join(sys.path)}
        before = outcome.tried
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder / "home", env=environment,
            bufsize=0,
        ) as process:  # fmt: skip
            apart = _follow(process, outcome, deadline_s)
        if outcome.tried == before and not apart:
            raise RuntimeError(f"No input of {outcome.kind} could be tried.")
        outcome.findings += [f"made {path}" for path in _made_outside(folder)]
    return apart


def _follow(process: subprocess.Popen[bytes], outcome: Outcome, deadline_s: float) -> int:
    """Take in what the process tells until it ends; end it where it tells nothing for too long.

    Returns:
        How many inputs it read together when it ended, which are yet to be tried.
    """
    assert process.stdout is not None
    trying, together, first_kib = "", 0, 0
    while True:
        ready = _tells(process, deadline_s if trying else START_S)
        line = process.stdout.readline() if ready else b""
        if not line:
            process.kill()
            if trying:
                how = "ended the process" if ready else f"took longer than {deadline_s:g} s"
                outcome.tried += not together
                outcome.findings.append(f"{how}: {trying}")
            return together if trying else 0
        told: dict[str, Any] = json.loads(line)
        if "input" in told:
            trying, first_kib = str(told["input"]), first_kib or int(told["peak_kib"])
            together = int(told["together"])
        elif "ending" in told:
            if not together:
                _count(outcome, str(told["ending"]))
            _note(outcome, trying, told, first_kib)
            trying = ""
        else:
            outcome.children_bytes = max(outcome.children_bytes, int(told["children_kib"]) << 10)


def _tells(process: subprocess.Popen[bytes], deadline_s: float) -> bool:
    """Wait until the process tells something, or is over a deadline.

    The deadline is one of the processors' time, for others may keep them busy; but nothing takes `PATIENCE`
    times as long by the clock.
    """
    begun_s = _processor_s(process)
    for _ in range(PATIENCE):
        if select.select([process.stdout], [], [], deadline_s)[0]:
            return True
        if _processor_s(process) - begun_s >= deadline_s:
            break
    return False


def _processor_s(process: subprocess.Popen[bytes]) -> float:
    """What a process has used of the processors, with the processes that it started."""
    try:
        watched = psutil.Process(process.pid)
        each = [one.cpu_times() for one in (watched, *watched.children(recursive=True))]
    except psutil.NoSuchProcess:
        return 0.0
    return float(sum(times.user + times.system for times in each))


def _count(outcome: Outcome, ending: str) -> None:
    outcome.tried += 1
    outcome.read += ending == "read"
    outcome.refused += ending == "refused"


def _note(outcome: Outcome, trying: str, told: dict[str, Any], first_kib: int) -> None:
    if told["ending"].startswith("finding"):
        outcome.findings.append(f"{told['ending']}: {trying}")
    outcome.slowest_s = max(outcome.slowest_s, told["seconds"])
    outcome.peak_bytes = max(outcome.peak_bytes, (int(told["peak_kib"]) - first_kib) << 10)


def _made_outside(folder: Path) -> list[str]:
    """Files where no input has any business: the home, the folder above, and beside what was to be read."""
    expected = {"home", "work"}
    outside = [path.name for path in folder.iterdir() if path.name not in expected]
    outside += [str(path) for path in (folder / "home").rglob("*") if ".cache" not in path.parts]
    others = folder / "work" / "others"
    return outside + [str(path) for path in others.rglob("*") if path.name != "secret.csv"]
