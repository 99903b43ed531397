"""An advice rule: a profile without instructions tells little."""

from __future__ import annotations

from collections.abc import Iterator

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding


def find(context: Context) -> Iterator[Finding]:
    """One finding where the profile has no instructions."""
    if not context.profile.tables().get("Instruction"):
        yield Finding(
            "empty_profile",
            "The profile has no instructions",
            "Capture the program with `neuron-profile capture` to see what the engines do.",
        )
