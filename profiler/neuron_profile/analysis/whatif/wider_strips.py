"""A kernel that works in narrow strips, in strips several times as wide, or as many times as high."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.whatif.change import Variant
from neuron_profile.analysis.whatif.kernel_lines import NO_LINE, kernel_lines
from neuron_profile.analysis.whatif.reordered import places_among_alike
from neuron_tools.arrays import Mask
from neuron_tools.records.program import Program
from neuron_tools.simulator.cost_scale import CostScale


def strips(program: Program, small: Mask) -> Mask:
    """(DMAs,) small transfers with one piece for each partition: only a wider tile has larger ones.

    None outside of kernels.
    """
    dmas = program.dmas
    if kernel_lines(program) is None:
        return np.zeros(len(dmas), bool)
    chosen: Mask = small & (dmas["descriptors"] <= dmas["partitions"])
    return chosen


def in_wider_strips(variant: Variant, together: int) -> Variant:
    """The variant with one instruction and one transfer where each line has so many now.

    Args:
        together: Strips that become one; of a line that runs less often, all of its rows.
    """
    program = variant.program
    lines = kernel_lines(program)
    if lines is None or together < 2:
        return variant
    table, dmas = program.instructions.copy(), program.dmas.copy()
    triggers = lines.instruction, table["engine"].astype(np.int64), table["opcode"].astype(np.int64)
    started, wider = _first_of(together, *triggers)
    moved, longer = _first_of(together, lines.dma)
    for column in ("columns", "elements"):
        table[column] = table[column] * wider
    for column in ("bytes", "descriptor_bytes"):
        dmas[column] = dmas[column] * longer
    scale = variant.scale.times(CostScale(started, moved))
    return replace(variant, program=replace(program, instructions=table, dmas=dmas), scale=scale)


def on_more_partitions(variant: Variant, instructions: Mask, dmas: Mask, most: int) -> Variant:
    """The variant with chosen rows of a kernel on as many partitions as there are.

    Args:
        instructions: (instructions,) which of them run on few partitions.
        dmas: (DMAs,) the same.
        most: Partitions that there are; of rows on a part of them, so many more become one.
    """
    program, lines = variant.program, kernel_lines(variant.program)
    table, moved = program.instructions.copy(), program.dmas.copy()
    used = np.concatenate([table["partitions"][instructions], moved["partitions"][dmas]])
    if lines is None or not len(used):
        return variant
    together = most // int(used.max())
    own = np.where(instructions | _triggers(program, dmas), lines.instruction, NO_LINE)
    kinds = table["engine"].astype(np.int64), table["opcode"].astype(np.int64)
    started, taller = _first_of(together, own, *kinds)
    kept, larger = _first_of(together, np.where(dmas, lines.dma, NO_LINE))
    table["partitions"] = table["partitions"] * np.where(instructions, taller, 1)
    for column in ("bytes", "descriptors", "partitions"):
        moved[column] = moved[column] * larger
    scale = variant.scale.times(CostScale(started, kept))
    return replace(variant, program=replace(program, instructions=table, dmas=moved), scale=scale)


def _triggers(program: Program, dmas: Mask) -> Mask:
    """(instructions,) whether each starts one of the chosen transfers."""
    starts = np.zeros(len(program.instructions), bool)
    by = np.flatnonzero(program.instructions["dma"] >= 0)
    starts[by] = dmas[program.instructions["dma"][by]]
    return starts


def _first_of(
    together: int, line: npt.NDArray[np.int64], *others: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """(rows,) 1 for the first of so many rows of a line, else 0; and how many rows each stands for."""
    place, alike = places_among_alike(line, *others)
    first = (place % together == 0) | (line == NO_LINE)
    stands_for = np.where(line == NO_LINE, 1, np.minimum(together, alike - place))
    return first.astype(np.float64), np.where(first, stands_for, 1)
