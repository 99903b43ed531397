"""How fast the machine of a run is, by three fixed pieces of work, so that targets mean the same everywhere.

An absolute target (instructions a second, milliseconds) was set on one machine, whose times for the same work
stand in `reference_machine.json`. A run measures its own, and the target is scaled by the ratio. Ratios to
peers and sizes in memory stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from time import process_time
from typing import Any, Literal

import numpy as np

from neuron_tools.compiled import compiled
from neuron_tools.frozen import frozen

Work = Literal["python", "compiled", "copy"]
REFERENCE_FILE = Path(__file__).with_name("reference_machine.json")
ROUNDS = 7
_STEPS = 200_000
_COMPILED_STEPS = 4_000_000
_COPIED_BYTES = 1 << 25


@frozen
class Machine:
    """CPU seconds of each fixed piece of work: the shortest of several rounds.

    Attributes:
        python: A loop over dictionary look-ups, additions and calls.
        compiled: A loop of dependent integer operations, compiled by numba.
        copy: Copies of 32 MiB.
    """

    python: float
    compiled: float
    copy: float

    def speed(self, work: Work, reference: Machine) -> float:
        """How many times as fast as the reference this machine does a kind of work."""
        return float(getattr(reference, work) / getattr(self, work))

    def describe(self, reference: Machine) -> str:
        """One line for people: milliseconds and speed of each kind of work."""
        parts = [
            f"{work} {seconds * 1e3:.1f} ms ({getattr(reference, work) / seconds:.2f} x the reference)"
            for work, seconds in asdict(self).items()
        ]
        return f"this machine: {', '.join(parts)}"


def measure() -> Machine:
    """Measure the machine that this runs on; takes about a second."""
    compiled_loop = compiled(_integers)
    compiled_loop(1)
    source = np.ones(_COPIED_BYTES, np.uint8)
    target = np.zeros_like(source)
    return Machine(
        _shortest(_python_loop),
        _shortest(lambda: compiled_loop(_COMPILED_STEPS)),
        _shortest(lambda: np.copyto(target, source)),
    )


def reference() -> Machine:
    """The machine on which absolute targets hold as they are written."""
    told: dict[str, Any] = json.loads(REFERENCE_FILE.read_text("utf-8"))
    return Machine(**told["seconds"])


def _shortest(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        begin = process_time()
        work()
        best = min(best, process_time() - begin)
    return best


def _python_loop() -> int:
    table = dict.fromkeys(range(64), 1)
    total = 0
    for step in range(_STEPS):
        total += table.get(step & 63, 0) + len((step, total))
    return total


def _integers(steps: int) -> int:
    state = 1
    for step in range(steps):
        state = (state * 69069 + step) & 0xFFFFFFFF
        state ^= state >> 7
    return state
