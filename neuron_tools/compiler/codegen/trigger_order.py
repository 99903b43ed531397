"""Puts transfers that wait for little before those that wait for more: weights are loaded ahead.

An engine triggers its transfers in order, and one that waits for a result holds all that follow it. So the
transfers of the Sync engine, which does nothing else, are triggered in the order in which what they wait
for was emitted, rather than in the order in which their code was. The rings keep their own order.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.records.program import Engine
from neuron_tools.simulator.builder import ProgramBuilder

IntArray = npt.NDArray[np.int64]
Table = npt.NDArray[np.void]


def trigger_when_ready(builder: ProgramBuilder) -> None:
    """Reorder the transfers that the Sync engine has triggered so far.

    Every instruction stays behind what it waits for: a transfer moves to just after the last of these, or of
    those of its ring's earlier transfers.
    """
    instructions, dmas, (rows, tokens) = builder.view()
    moved = np.flatnonzero((instructions["engine"] == Engine.SYNC) & (instructions["dma"] >= 0))
    if not len(moved):
        return
    ready = _ready_after(instructions, dmas, rows, tokens)
    queues = dmas["queue"][instructions["dma"][moved]]
    place = np.arange(len(instructions), dtype=np.float64)
    for queue in np.unique(queues):
        own = moved[queues == queue]
        place[own] = np.maximum.accumulate(ready[own]) + _JUST_AFTER
    builder.reorder(np.argsort(place, kind="stable"))


_JUST_AFTER = 0.5


def _ready_after(instructions: Table, dmas: Table, rows: IntArray, tokens: IntArray) -> IntArray:
    """(instructions,) the last row that each one waits for, -1 where there is none; a DMA is its trigger."""
    trigger = np.full(len(dmas), -1, np.int64)
    started = np.flatnonzero(instructions["dma"] >= 0)
    trigger[instructions["dma"][started]] = started
    waited = tokens.copy()
    by_dma = tokens < -1
    waited[by_dma] = trigger[-2 - tokens[by_dma]]  # see `dma_token`
    ready = np.full(len(instructions), -1, np.int64)
    np.maximum.at(ready, rows, waited)
    return ready
