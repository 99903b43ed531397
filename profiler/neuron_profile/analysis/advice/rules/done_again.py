"""What is done again and again without need: it gives the same each time, or nobody reads it."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.advice.left_out import Kind, invariant, invariant_copies, unused


def repeated_copies(context: Context) -> Iterator[Finding]:
    """A finding per line that the loop's text shows to copy the same to the device each time."""
    told = (
        "{name} is copied to the device {times}, and is the same each time",
        "Copy it once, before the loop.",
    )
    yield from invariant(context, "repeated_copies", Kind.COPY, *told)
    yield from invariant_copies(context, "repeated_copies", *told)


def layout_copies(context: Context) -> Iterator[Finding]:
    """A finding per line that the loop's text shows to bring the same into another layout each time."""
    return invariant(
        context, "layout_copies", Kind.LAYOUT,
        "{name} is brought into another layout {times}, and is the same each time",
        "Do it once, before the loop, or keep the tensor in the layout in which it is used.",
    )  # fmt: skip


def recomputation(context: Context) -> Iterator[Finding]:
    """A finding per line that the loop's text shows to compute the same each time."""
    title = "{name} is computed {times}, and is the same each time"
    return invariant(context, "recomputation", Kind.COMPUTATION, title, "Compute it once, before the loop.")


def unused_outputs(context: Context) -> Iterator[Finding]:
    """A finding per line whose name is read nowhere in its function."""
    return unused(context, "unused_outputs", "{name} is computed {times} and never read", "Leave it out.")
