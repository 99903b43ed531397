"""A tensor that does not change is copied to the device in every iteration of a loop."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.advice.left_out import Kind, invariant, invariant_copies

_TITLE = "{name} is copied to the device {times} times, and is the same each time"
_CHANGE = "Copy it once, before the loop."


def find(context: Context) -> Iterator[Finding]:
    """A finding per line that the loop's text shows to copy the same each time."""
    yield from invariant(context, "repeated_copies", Kind.COPY, _TITLE, _CHANGE)
    yield from invariant_copies(context, "repeated_copies", _TITLE, _CHANGE)
