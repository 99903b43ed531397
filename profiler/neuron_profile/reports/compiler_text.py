"""What the compiler of NKI kernels changed, in a line."""

from __future__ import annotations

from collections.abc import Sequence

from neuron_profile.analysis.compiler_changes import PassChange
from neuron_profile.reports.quantities import count, scaled

_NAMED = 3


def compiler_line(changes: Sequence[PassChange]) -> str:
    """One sentence on what was changed between the kernels as written and what ran; "" where nothing was."""
    if not changes:
        return ""
    named = "; ".join(f"{change.title} ({_amounts(change)})" for change in changes[:_NAMED])
    more = f"; {len(changes) - _NAMED} more in the table Transformation" if len(changes) > _NAMED else ""
    return f"The compiler changed NKI kernels: {named}{more}."


def _amounts(change: PassChange) -> str:
    parts = []
    if change.removed:
        parts.append(f"{count(change.removed, 'instruction')} fewer")
    if change.added:
        parts.append(f"{count(change.added, 'instruction')} more")
    if change.saved_bytes:
        word = "less" if change.saved_bytes > 0 else "more"
        parts.append(f"{scaled(abs(change.saved_bytes), 'B')} of HBM {word}")
    return ", ".join(parts) or count(change.lines, "line")
