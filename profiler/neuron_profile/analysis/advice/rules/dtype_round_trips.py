"""A tensor that does not change is cast in every iteration of a loop."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.advice.left_out import Kind, invariant


def find(context: Context) -> Iterator[Finding]:
    """A finding per line that the loop's text shows to give the same each time."""
    yield from invariant(
        context, "dtype_round_trips", Kind.CAST,
        "{name} is cast {times} times, and is the same each time",
        "Cast it once, before the loop, or keep the tensor in the type in which it is used.",
    )  # fmt: skip
