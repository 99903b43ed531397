"""Spills: intermediate values that SBUF had no room for go to HBM and back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.whatif.change import parse_change
from neuron_profile.analysis.whatif.spills import spills
from neuron_profile.reports.quantities import scaled
from neuron_tools.arrays import Mask
from neuron_tools.records.program import Program


def find(context: Context) -> Iterator[Finding]:
    """One finding for all spills, at the line that has most of their time."""
    hot = context.hotspot(_spilling)
    if not hot.busy_ns:
        return
    moved = sum(
        use.count * int(use.program.dmas["bytes"][_spilling(use.program)[1]].sum())
        for use in context.programs
    )
    yield context.finding(
        "spill",
        f"{scaled(moved, 'B')} are spilled to HBM and loaded back, because a tile does not fit SBUF",
        "Use smaller tiles, or a smaller working set: split the batch or the sequence, recompute "
        "instead of keeping.",
        parse_change("tiles=fit"),
        place=hot.place,
        evidence={"spilled_bytes": moved, "dma_ns": round(hot.busy_ns)},
    )


def _spilling(program: Program) -> tuple[Mask, Mask]:
    return np.zeros(len(program.instructions), bool), spills(program)
