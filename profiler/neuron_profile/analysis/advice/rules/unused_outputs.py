"""A result is computed in every iteration of a loop, and nobody reads it."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.advice.left_out import unused


def find(context: Context) -> Iterator[Finding]:
    """A finding per line whose name is read nowhere in its function."""
    yield from unused(
        context, "unused_outputs", "{name} is computed {times} times and never read", "Leave it out."
    )
