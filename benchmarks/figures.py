"""What a benchmark gives back: figures with a target and, where there is one, a peer of the same run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter_ns
from typing import Any, Literal

from benchmarks.machine import Machine, Work
from neuron_tools.frozen import frozen


@frozen
class Target:
    """A bound on a figure: the value must be at most, or at least, `limit`.

    Attributes:
        relation, limit: The bound, as it holds on the reference machine.
        paced_by: The kind of work whose speed sets the pace; "": the bound is the same on every machine.
    """

    relation: Literal["<=", ">="]
    limit: float
    paced_by: Work | Literal[""] = ""

    def on(self, machine: Machine, reference: Machine) -> Target:
        """The bound on another machine: times grow and rates fall as it is slower."""
        if not self.paced_by:
            return self
        speed = machine.speed(self.paced_by, reference)
        return replace(self, limit=self.limit * speed if self.relation == ">=" else self.limit / speed)

    def holds(self, value: float) -> bool:
        """Whether a value keeps the bound; NaN never does."""
        # A NumPy comparison gives a NumPy truth value, which is neither True nor False itself.
        return bool(value <= self.limit if self.relation == "<=" else value >= self.limit)

    def __str__(self) -> str:
        return f"{self.relation} {self.limit:.4g}" if self.paced_by else f"{self.relation} {self.limit:g}"


@frozen
class Peer:
    """The same thing done by other software, measured in the same run on the same data."""

    name: str
    value: float


@frozen
class Figure:
    """One measured number.

    Attributes:
        name: What was measured.
        value: The number, in `unit`.
        unit: Its unit.
        target: What it must keep, if anything.
        peer: What it is compared with, if anything.
        note: How it was measured.
    """

    name: str
    value: float
    unit: str
    target: Target | None = None
    peer: Peer | None = None
    note: str = ""

    def on(self, machine: Machine, reference: Machine) -> Figure:
        """The figure with its target as it is on the machine that ran it."""
        return self if self.target is None else replace(self, target=self.target.on(machine, reference))

    @property
    def holds(self) -> bool | None:
        """Whether the target is kept; None without one."""
        return None if self.target is None else self.target.holds(self.value)

    @property
    def ratio(self) -> float | None:
        """Value by peer's value; None without a peer or where the peer's is 0."""
        return None if self.peer is None or self.peer.value == 0 else self.value / self.peer.value

    def as_json(self) -> dict[str, Any]:
        """The figure as the `--json` output has it; numbers that are not finite become null."""
        return {
            "name": self.name,
            "value": _finite(self.value),
            "unit": self.unit,
            "target": None if self.target is None else str(self.target),
            "holds": self.holds,
            "peer": None if self.peer is None else self.peer.name,
            "peer_value": None if self.peer is None else _finite(self.peer.value),
            "ratio": _finite(self.ratio),
            "note": self.note,
        }


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def fastest_in_turn(candidates: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Times candidates in turn, round after round, so that all meet the same disturbances.

    Returns:
        The shortest wall time of each in nanoseconds.
    """
    best = dict.fromkeys(candidates, math.inf)
    for _ in range(rounds):
        for name, run in candidates.items():
            started = perf_counter_ns()
            run()
            best[name] = min(best[name], perf_counter_ns() - started)
    return best


def as_table(figures: Sequence[Figure]) -> list[tuple[str, ...]]:
    """Rows of text: name, value, target, held, peer, peer's value, ratio, note."""
    return [
        (
            figure.name,
            f"{figure.value:,.4g} {figure.unit}",
            "" if figure.target is None else str(figure.target),
            {None: "", True: "yes", False: "NO"}[figure.holds],
            "" if figure.peer is None else figure.peer.name,
            "" if figure.peer is None else f"{figure.peer.value:,.4g} {figure.unit}",
            "" if figure.ratio is None else f"{figure.ratio:.3g}",
            figure.note,
        )
        for figure in figures
    ]
