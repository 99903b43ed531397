"""Look-ups of short rows: GpSimd makes a descriptor for each, which takes longer than moving its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.whatif.change import Change, Variant
from neuron_profile.analysis.whatif.executions import Origins
from neuron_profile.analysis.whatif.lookups import EFFICIENT_BYTES, narrow_lookups, with_wide_lookups
from neuron_tools.arrays import Mask
from neuron_tools.records.program import Program

MINIMUM_SHARE = 0.05


def find(context: Context) -> Iterator[Finding]:
    """One finding for all look-ups of rows under 512 bytes, at the line that has most of their time."""
    hot = context.large_hotspot(_narrow, MINIMUM_SHARE)
    if hot is None:
        return
    chosen = [(use.count, use.program.dmas[_narrow(use.program)[1]]) for use in context.programs]
    rows = sum(count * int(dmas["descriptors"].sum()) for count, dmas in chosen)
    shortest = min(int(dmas["descriptor_bytes"].min()) for _, dmas in chosen if len(dmas))
    yield context.finding(
        "narrow_lookups",
        f"{rows:,} short rows, the shortest of {shortest} bytes, are looked up one by one: GpSimd makes a "
        "descriptor for each",
        f"Look up rows of at least {EFFICIENT_BYTES} bytes: keep what is always needed together in one row "
        "(tables with the same indices side by side in one table, neighbouring rows as one), and look up an "
        "index that repeats once.",
        Change("", _widened),
        place=hot.place,
        evidence={"dma_ns": round(hot.busy_ns), "rows": rows, "shortest_bytes": shortest},
    )


def _narrow(program: Program) -> tuple[Mask, Mask]:
    return np.zeros(len(program.instructions), bool), narrow_lookups(program)


def _widened(variant: Variant, origins: Origins) -> Variant:
    """The same bytes in rows of 512."""
    if not narrow_lookups(variant.program).any():
        return variant
    program, scale = with_wide_lookups(variant.program, variant.scale)
    return replace(variant, program=program, scale=scale)
