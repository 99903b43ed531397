"""Kills captures at random moments, and looks at what is left: does it open, what is lost?

Which capture is killed when comes from a seed and a number, so that a campaign goes on where it was.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.killed_captures.left import judged
from benchmarks.killed_captures.scenes import SCENES
from neuron_tools.frozen import frozen

TICKS = (30, 250)
"""Programs of different length: some moments come while a capture is being finished, some after."""
LATEST_S = 3.0
FROM_START = 0.1
"""Of how many the moment is counted from the start of the capture: they come while it starts up."""
STARTUP_S = 20.0
"""A command that is started as users do takes this long until it computes."""
VICTIMS = {"all": 4, "a process": 3, "capture": 2}
WEIGHTS = {"with profile(...)": 4, "one process": 4, "forks": 3, "DDP": 1}
"""How often a capture is one of these; of every hundred, five are commands as users start them."""
COMMANDS = {0: "torchrun", 20: "neuron-profile capture", 40: "neuron-profile capture",
            60: "neuron-profile capture", 80: "neuron-profile capture"}  # fmt: skip


@frozen
class Kill:
    """One kill, and what it left.

    Attributes:
        begins: From what the moment is counted: "start" of the capture, or the "first tick".
        after_s: The moment.
        victim: "all", the "capture" alone (what is recorded lives on), or "a process" of those that compute.
        written: Ticks that were done when it came, of all processes.
        kept: Those that the profile holds in the end.
        lost_s: How long before the kill the first tick was done that is lost; 0 if none is.
        opened: "no profile", "incomplete" or "complete", and " recovered" where its log had to be read.
        finding: What must not be; "" if nothing.
    """

    seed: int
    number: int
    scene: str
    victim: str
    begins: str
    after_s: float
    ticks: int
    choice: float
    written: int = 0
    kept: int = 0
    lost_s: float = 0.0
    opened: str = "no profile"
    finding: str = ""


class _Host:
    """The process that starts captures and kills them."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.killed_captures.host"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> _Host:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def kill(self, kill: Kill, folder: Path) -> int:
        """Run a capture and kill it; the moment, in ns of the monotonic clock."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({**asdict(kill), "folder": str(folder)}) + "\n")
        self._process.stdin.flush()
        return int(json.loads(self._process.stdout.readline())["killed_ns"])


def campaign(count: int, seed: int = 0, kept_in: Path | None = None, first: int = 0) -> list[Kill]:
    """So many kills.

    Args:
        kept_in: A file with a line for each kill made before, which gets one for each of these.
        first: The number of the first.
    """
    kills = [
        kill for kill in kept_kills(kept_in) if kill.seed == seed and first <= kill.number < first + count
    ]
    missing = sorted(set(range(first, first + count)) - {kill.number for kill in kills})
    if not missing:
        return kills
    with _Host() as host:
        for number in missing:
            kills.append(_left(host, planned(seed, number)))
            _keep(kept_in, kills[-1])
    return kills


def planned(seed: int, number: int) -> Kill:
    """What is killed, and when."""
    chance = random.Random(f"{seed} {number}")
    scene = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    scene = COMMANDS.get(number % 100, scene)
    victim = chance.choices(list(VICTIMS), list(VICTIMS.values()))[0]
    begins = "start" if chance.random() < FROM_START else "first tick"
    is_slow = begins == "start" and scene in COMMANDS.values()
    after_s = chance.uniform(0, STARTUP_S if is_slow else LATEST_S)
    return Kill(seed, number, scene, victim, begins, after_s, chance.randint(*TICKS), chance.random())


def kept_kills(file: Path | None) -> Iterator[Kill]:
    """The kills that a file holds."""
    lines = file.read_text().splitlines() if file is not None and file.exists() else []
    return (Kill(**json.loads(line)) for line in lines)


def _keep(file: Path | None, kill: Kill) -> None:
    if file is not None:
        with file.open("a") as lines:
            lines.write(json.dumps(asdict(kill)) + "\n")


def _left(host: _Host, kill: Kill) -> Kill:
    """The kill, with what it left."""
    folder = Path(tempfile.mkdtemp(prefix="neuron-kill-"))
    try:
        killed_ns = host.kill(kill, folder)
        left = judged(folder, SCENES[kill.scene].programs, killed_ns)
        return replace(kill, **asdict(left))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
