"""Instructions that use few of the 128 partitions: lanes stand idle beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.whatif.change import Change, Variant
from neuron_profile.analysis.whatif.executions import Origins
from neuron_profile.analysis.whatif.kernel_lines import NO_LINE, kernel_lines
from neuron_profile.analysis.whatif.wider_strips import on_more_partitions
from neuron_profile.reports.quantities import duration
from neuron_tools.arrays import Mask
from neuron_tools.records.program import Engine, Program
from neuron_tools.simulator.cost_scale import CostScale

PARTITIONS = 128
FEW = 64
MINIMUM_SHARE = 0.10
_ENGINES = (int(Engine.VECTOR), int(Engine.SCALAR), int(Engine.GPSIMD), int(Engine.TENSOR))


def find(context: Context) -> Iterator[Finding]:
    """One finding where instructions on at most half of the partitions take a tenth of the device time."""
    hot = context.large_hotspot(_underfilled, MINIMUM_SHARE)
    if hot is None:
        return
    yield context.finding(
        "underfilled_tiles",
        f"Instructions on at most {FEW} of {PARTITIONS} partitions take {duration(hot.busy_ns)}",
        "Put a dimension of at least 128 on the partitions: merge small dimensions (batch and heads, "
        "say), or batch several small operations into one.",
        Change("", _filled),
        place=hot.place,
        evidence={"busy_ns": round(hot.busy_ns), "at_place_ns": round(hot.place_ns)},
    )


def _underfilled(program: Program) -> tuple[Mask, Mask]:
    table = program.instructions
    few = (table["partitions"] > 0) & (table["partitions"] <= FEW) & np.isin(table["engine"], _ENGINES)
    return few & (table["dma"] < 0), _transfers(program)


def _transfers(program: Program) -> Mask:
    """Transfers of a kernel's tiles on few partitions, of which a line has as many as would fill the rest."""
    lines, dmas = kernel_lines(program), program.dmas
    if lines is None:
        return np.zeros(len(dmas), bool)
    few = (
        (dmas["partitions"] > 0) & (dmas["partitions"] <= FEW) & (dmas["tile"] >= 0) & (lines.dma != NO_LINE)
    )
    _, group, counts = np.unique(lines.dma, return_inverse=True, return_counts=True)
    chosen: Mask = few & (counts[group.ravel()] * dmas["partitions"] >= PARTITIONS)
    return chosen


def _filled(variant: Variant, origins: Origins) -> Variant:
    """The same elements on all partitions: the instruction takes its part of the time.

    Where a kernel moves tiles on few of them, several of its instructions and transfers become one.
    """
    chosen, moved = _underfilled(variant.program)
    if moved.any():
        return on_more_partitions(variant, chosen, moved, PARTITIONS)
    share = np.where(chosen, variant.program.instructions["partitions"] / PARTITIONS, 1.0)
    scale = CostScale(share, np.ones(len(variant.program.dmas)))
    return replace(variant, scale=variant.scale.times(scale))
