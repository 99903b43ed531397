"""A causal profile: each line, operation or module made faster in turn, and what the whole program gains.

As Coz does for CPUs (Curtsinger and Berger, "Finding code that counts with causal profiling", SOSP 2015), but
simulated: where effort pays is not where time is spent but where the end moves.
"""

from __future__ import annotations

from collections import defaultdict

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Place
from neuron_profile.analysis.whatif.change import parse_change
from neuron_profile.analysis.whatif.run import WhatIf
from neuron_tools.frozen import frozen

LEVELS = {"line": "line", "operation": "operation", "module": "module"}
"""Levels, and the kind of change that makes one of them faster."""
SPEEDUPS = (0.1, 0.25, 0.5)
MOST_SIMULATED = 200_000_000
"""Instructions that are simulated at most; candidates that would pass it are left out, the shortest first."""


@frozen
class CausalRow:
    """One line, operation or module.

    Attributes:
        what: "train.py:12", "aten::mm" or "model.layers.0".
        busy_ns: Active time of its instructions and transfers on all engines, over all executions.
        speedups: By how much it was made faster, 0 to 1.
        gains_ns: Time of the program that each speed-up saves.
        most: The largest of them as a part of the program's time.
    """

    what: str
    busy_ns: float
    speedups: tuple[float, ...]
    gains_ns: tuple[int, ...]
    most: float


@frozen
class CausalProfile:
    """Rows by falling gain.

    Attributes:
        total_ns: Time of the program as it is.
        left_out: Candidates that were not tried, because of the limit or of the cost of simulating them.
    """

    level: str
    total_ns: int
    left_out: int
    rows: tuple[CausalRow, ...]


def find_causes(
    context: Context, level: str = "line", limit: int = 40, speedups: tuple[float, ...] = SPEEDUPS
) -> CausalProfile | None:
    """The causal profile of a capture; None where it does not hold its programs.

    Args:
        level: One of `LEVELS`.
        limit: Candidates to try: those that are busy for longest.
        speedups: Parts of the time taken away, 0 to 1.
    """
    if context.what_if is None:
        return None
    busy = _busy(context, level)
    order = sorted(busy, key=lambda what: (-busy[what], what))
    chosen = order[: min(limit, _affordable(context, len(speedups)))]
    total_ns = context.what_if.recorded_ns()
    rows = [_row(context.what_if, level, what, busy[what], speedups, total_ns) for what in chosen]
    rows.sort(key=lambda row: (-row.most, -row.busy_ns, row.what))
    return CausalProfile(level, total_ns, len(order) - len(chosen), tuple(rows))


def _busy(context: Context, level: str) -> dict[str, float]:
    """Busy time of each candidate."""
    times: defaultdict[str, float] = defaultdict(float)
    for place, busy_ns in context.busy_places().items():
        name = _name(place, level)
        if name:
            times[name] += busy_ns
    return dict(times)


def _name(place: Place, level: str) -> str:
    if level == "line":
        return f"{place.file}:{place.line}" if place.file and place.line else ""
    return place.operation if level == "operation" else place.module


def _affordable(context: Context, speedups: int) -> int:
    """Candidates that can be tried within the limit; each may simulate every program."""
    instructions = sum(len(use.program.instructions) for use in context.programs)
    return max(1, MOST_SIMULATED // max(1, instructions * speedups))


def _row(
    what_if: WhatIf, level: str, what: str, busy_ns: float, speedups: tuple[float, ...], total_ns: int
) -> CausalRow:
    gains = tuple(
        total_ns
        - what_if.total_ns(what_if.durations_ns(parse_change(f"{LEVELS[level]}:{what}={1 - faster:g}")))
        for faster in speedups
    )
    return CausalRow(what, busy_ns, speedups, gains, max(0, *gains) / total_ns if total_ns else 0.0)
