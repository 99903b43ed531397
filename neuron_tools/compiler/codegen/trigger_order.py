"""Puts transfers that wait for little before those that wait for more: weights are loaded ahead.

An engine triggers its transfers in order, and one that waits for a result holds all that follow it. So the
transfers of the Sync engine, which does nothing else, are triggered in the order in which what they wait
for was emitted, rather than in the order in which their code was. None is triggered much sooner than it must
be, as it would take bandwidth from those that are needed before it. The rings keep their own order.
"""

from __future__ import annotations

import numpy as np

from neuron_tools.arrays import Floats, Ints, Table
from neuron_tools.hardware.neuron_core import NeuronCore
from neuron_tools.records.program import Engine
from neuron_tools.simulator.builder import ProgramBuilder
from neuron_tools.simulator.instruction_costs import instruction_costs

AHEAD_NS = 100e3
"""How long before the last moment a transfer may begin: waits that are not foreseen here take up to that."""
_COMPUTING = (Engine.TENSOR, Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD)
_JUST_AFTER = 0.5


def trigger_when_ready(builder: ProgramBuilder, core: NeuronCore) -> None:
    """Reorder the transfers that the Sync engine has triggered so far.

    Every instruction stays behind what it waits for: a transfer moves to just after the last of these, or of
    those of its ring's earlier transfers, or to where the time comes in which it is needed.
    """
    instructions, dmas, (rows, tokens) = builder.view()
    moved = np.flatnonzero((instructions["engine"] == Engine.SYNC) & (instructions["dma"] >= 0))
    if not len(moved):
        return
    own_dmas = instructions["dma"][moved]
    now_ns = _undisturbed_ns(instructions, core)
    needed_ns = _needed_ns(now_ns, rows, tokens, len(dmas))[own_dmas]
    latest_ns = _latest_ns(needed_ns, dmas["bytes"][own_dmas] / core.dma_bandwidth * 1e9)
    in_time = np.minimum(np.searchsorted(now_ns, latest_ns - AHEAD_NS), moved) - 1
    ready = np.maximum(_ready_after(instructions, dmas, rows, tokens)[moved], in_time)
    queues = dmas["queue"][own_dmas]
    place = np.arange(len(instructions), dtype=np.float64)
    for queue in np.unique(queues):
        own = queues == queue
        place[moved[own]] = np.maximum.accumulate(ready[own]) + _JUST_AFTER
    builder.reorder(np.argsort(place, kind="stable"))


def _undisturbed_ns(instructions: Table, core: NeuronCore) -> Floats:
    """(instructions,) when the engine that has most to do until then is done, if none had to wait."""
    interval_ps, _ = instruction_costs(instructions, core)
    now = np.zeros(len(instructions))
    for engine in _COMPUTING:
        np.maximum(now, np.cumsum(np.where(instructions["engine"] == engine, interval_ps, 0)), out=now)
    return now / 1e3


def _needed_ns(now_ns: Floats, rows: Ints, tokens: Ints, dmas: int) -> Floats:
    """(dmas,) when the first instruction comes that waits for a transfer; infinite where none does."""
    needed = np.full(dmas, np.inf)
    by_dma = tokens < -1
    np.minimum.at(needed, -2 - tokens[by_dma], now_ns[rows[by_dma]])  # see `dma_token`
    return needed


def _latest_ns(needed_ns: Floats, take_ns: Floats) -> Floats:
    """When each transfer must begin at the latest, one after another, for all to be there when needed.

    Args:
        needed_ns, take_ns: When they are needed, and how long they take; shape (transfers,).
    """
    order = np.argsort(needed_ns, kind="stable")
    end = np.cumsum(take_ns[order])
    slack = np.minimum.accumulate((needed_ns[order] - end)[::-1])[::-1]
    latest = np.empty(len(order))
    latest[order] = end - take_ns[order] + slack
    return latest


def _ready_after(instructions: Table, dmas: Table, rows: Ints, tokens: Ints) -> Ints:
    """(instructions,) the last row that each one waits for, -1 where there is none; a DMA is its trigger."""
    trigger = np.full(len(dmas), -1, np.int64)
    started = np.flatnonzero(instructions["dma"] >= 0)
    trigger[instructions["dma"][started]] = started
    waited = tokens.copy()
    by_dma = tokens < -1
    waited[by_dma] = trigger[-2 - tokens[by_dma]]
    ready = np.full(len(instructions), -1, np.int64)
    np.maximum.at(ready, rows, waited)
    return ready
