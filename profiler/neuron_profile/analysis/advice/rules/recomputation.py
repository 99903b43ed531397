"""A value that does not change is computed in every iteration of a loop."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.advice.left_out import Kind, invariant


def find(context: Context) -> Iterator[Finding]:
    """A finding per line that the loop's text shows to give the same each time."""
    yield from invariant(
        context, "recomputation", Kind.COMPUTATION,
        "{name} is computed {times} times, and is the same each time",
        "Compute it once, before the loop.",
    )  # fmt: skip
