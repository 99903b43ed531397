"""Look-ups of a program's rows: one descriptor for each row, which GpSimd makes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.whatif.kernel_lines import kernel_lines
from neuron_tools.arrays import Mask
from neuron_tools.records.program import Program, QueueKind
from neuron_tools.simulator.cost_scale import CostScale

EFFICIENT_BYTES = 512  # DMA efficiency falls below this (NKI documentation, DMA)


def looks_up(program: Program) -> Mask:
    """(DMAs,) what takes rows from places that the program computes, a descriptor for each."""
    dmas = program.dmas
    if not len(dmas):
        return np.zeros(0, bool)
    made = np.array([queue.kind is QueueKind.SOFTWARE_DYNAMIC for queue in program.queues])[dmas["queue"]]
    chosen: Mask = made & (dmas["descriptors"] > 1)
    return chosen


def narrow_lookups(program: Program) -> Mask:
    """(DMAs,) what gathers or scatters rows shorter than `EFFICIENT_BYTES` outside of kernels."""
    dmas = program.dmas
    if kernel_lines(program) is not None or not len(dmas):
        return np.zeros(len(dmas), bool)
    chosen: Mask = looks_up(program) & (dmas["descriptor_bytes"] < EFFICIENT_BYTES)
    return chosen


def of_lookups(program: Program) -> Mask:
    """(DMAs,) all transfers of operations that look up short rows: their indices and results too."""
    narrow = narrow_lookups(program)
    chosen: Mask = np.isin(program.dmas["hlo"], np.unique(program.dmas["hlo"][narrow]))
    return chosen & narrow.any()


def with_wide_lookups(program: Program, scale: CostScale) -> tuple[Program, CostScale]:
    """The same bytes looked up in rows of 512: as many fewer rows, indices, transfers and descriptors."""
    table, dmas = program.instructions.copy(), program.dmas.copy()
    moved, started = np.ones(len(dmas)), np.ones(len(table))
    narrow = narrow_lookups(program)
    for hlo in np.unique(dmas["hlo"][narrow]).tolist():
        here = dmas["hlo"] == hlo
        together = EFFICIENT_BYTES // int(dmas["descriptor_bytes"][narrow & here].min())
        if together > 1:
            _widen(dmas, moved, here, together)
    triggers = np.flatnonzero(table["dma"] >= 0)
    gone = triggers[moved[table["dma"][triggers]] == 0]
    started[gone], table["wait_count"][gone] = 0.0, 0
    return replace(program, instructions=table, dmas=dmas), scale.times(CostScale(started, moved))


def _widen(dmas: npt.NDArray[np.void], moved: npt.NDArray[np.float64], here: Mask, together: int) -> None:
    """Moves what one operation moves in as many fewer transfers, the first ones of each kind.

    Those of rows keep the number of their descriptors; of indices, which are loaded at once, a part is moved.
    """
    kinds = np.stack([dmas["queue"], dmas["source_memory"], dmas["tensor"]], axis=1).astype(np.int64)
    for kind in np.unique(kinds[here], axis=0):
        rows = np.flatnonzero(here & (kinds == kind).all(axis=1))
        if len(rows) < together:
            dmas["bytes"][rows] = np.maximum(dmas["bytes"][rows] // together, 1)
            dmas["descriptor_bytes"][rows] = np.maximum(dmas["descriptor_bytes"][rows] // together, 1)
            continue
        whole = np.add.reduceat(dmas["bytes"][rows], np.arange(0, len(rows), together))
        first, wide = rows[: len(whole)], dmas["descriptor_bytes"][rows[: len(whole)]] * together
        moved[rows[len(whole) :]] = 0.0
        dmas["bytes"][first], dmas["descriptor_bytes"][first] = whole, wide
        dmas["descriptors"][first] = -(-whole // np.maximum(wide, 1))
