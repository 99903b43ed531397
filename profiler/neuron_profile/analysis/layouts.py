"""Layouts of one job compared: which of them no other beats in time, memory and cost at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from neuron_profile.analysis.job_step import JobStep
from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen

_EXPERTS = "ep"
"""Experts are shared among the ranks of a pipeline stage, which the other degrees make: it adds none."""


@frozen
class Layout:
    """Degrees of parallelism by name ("dp", "tp", ...), outermost first."""

    degrees: tuple[tuple[str, int], ...]

    @property
    def ranks(self) -> int:
        """Ranks of the job."""
        return prod(degree for name, degree in self.degrees if name != _EXPERTS)

    @property
    def problem(self) -> str:
        """Why there is no such layout; empty where there is."""
        degrees = dict(self.degrees)
        experts, stage_ranks = degrees.get(_EXPERTS, 1), self.ranks // degrees.get("pp", 1)
        if stage_ranks % experts == 0:
            return ""
        return f"experts on {experts} ranks do not divide the {stage_ranks} of a pipeline stage"

    @property
    def text(self) -> str:
        """ "dp 64, tp 8": degrees of 1 are left out."""
        return ", ".join(f"{name} {degree}" for name, degree in self.degrees if degree > 1) or "one rank"

    def fill(self, arguments: Sequence[str]) -> tuple[str, ...]:
        """A command with `{dp}` and the like, and `{ranks}`, replaced.

        Raises:
            UsageError: A degree but that of data parallelism, which the others leave, has no place in it.
        """
        given = {**dict(self.degrees), "ranks": self.ranks}
        for name, degree in self.degrees:
            if degree > 1 and name != "dp" and not any(f"{{{name}}}" in each for each in arguments):
                raise UsageError(f"The command does not say where --{name} goes: write {{{name}}} in it.")
        filled = []
        for argument in arguments:
            for name, value in given.items():
                argument = argument.replace(f"{{{name}}}", str(value))
            filled.append(argument)
        return tuple(filled)


@frozen
class LayoutResult:
    """What one layout takes.

    Attributes:
        step_ns: None, as what follows, where it could not be measured.
        tokens_per_second: None where nobody told how many tokens a step has.
        core_hours: NeuronCore hours of 1,000 steps.
        on_front: No other that fits is at least as good in time, memory and cost, and better in one.
        limit: What takes most of the step; why it could not be measured.
    """

    layout: str
    ranks: int
    step_ns: int | None = None
    tokens_per_second: float | None = None
    mfu: float | None = None
    exposed_ns: int | None = None
    bubble_ns: int | None = None
    peak_bytes: int | None = None
    fits: bool = False
    core_hours: float | None = None
    on_front: bool = False
    limit: str = ""


def layouts(degrees: Mapping[str, Sequence[int]]) -> tuple[Layout, ...]:
    """Every combination of the degrees, once."""
    given = {name: dict.fromkeys(numbers) for name, numbers in degrees.items() if numbers}
    return tuple(Layout(tuple(zip(given, chosen))) for chosen in product(*given.values()))


def result_of(layout: Layout, step: JobStep, tokens_per_step: int | None) -> LayoutResult:
    """The row of a layout that ran."""
    slowest = max(step.ranks, key=lambda rank: rank.exposed_ns + rank.bubble_ns)
    seconds = step.step_ns * 1e-9
    return LayoutResult(
        layout=layout.text,
        ranks=layout.ranks,
        step_ns=step.step_ns,
        tokens_per_second=tokens_per_step / seconds if tokens_per_step and seconds else None,
        mfu=step.mfu,
        exposed_ns=slowest.exposed_ns,
        bubble_ns=slowest.bubble_ns,
        peak_bytes=step.peak_bytes,
        fits=step.fits,
        core_hours=layout.ranks * seconds * 1000 / 3600,
        limit=step.limit,
    )


def failure_of(layout: Layout, reason: str) -> LayoutResult:
    """The row of a layout that did not run."""
    return LayoutResult(layout.text, layout.ranks, limit=reason)


def with_front(results: Iterable[LayoutResult]) -> tuple[LayoutResult, ...]:
    """The results, those that nothing beats marked."""
    rows = tuple(results)
    able = [row for row in rows if row.fits]
    return tuple(
        replace(row, on_front=row.fits and not any(_beats(other, row) for other in able)) for row in rows
    )


def _beats(one: LayoutResult, other: LayoutResult) -> bool:
    pairs = [
        (one.step_ns or 0, other.step_ns or 0),
        (one.peak_bytes or 0, other.peak_bytes or 0),
        (one.core_hours or 0.0, other.core_hours or 0.0),
    ]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)
