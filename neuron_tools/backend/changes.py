"""What each pass changed, by line of the kernel."""

from __future__ import annotations

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.backend.body import SITE, Body
from neuron_tools.backend.costs import choices, kind_costs
from neuron_tools.backend.kinds import Transfer
from neuron_tools.backend.schedule import trigger_engine
from neuron_tools.records.kernel_source import Transformation
from neuron_tools.records.program import Engine, Memory


def changes_of(name: str, before: Body, after: Body) -> tuple[Transformation, ...]:
    """What a pass took away and put in, one entry for each line that it changed.

    Args:
        name: The pass.
        before, after: What it was given, and what it made.
    """
    if after is before:
        return ()
    sites = 1 + max(int(body.rows[:, SITE].max(initial=-1)) for body in (before, after))
    calls, moved, busy = (
        old - new for old, new in zip(_totals(before, sites), _totals(after, sites), strict=True)
    )
    changed = np.flatnonzero((calls != 0) | (moved != 0) | (busy != 0))
    return tuple(
        Transformation(name, site, int(calls[site]), int(moved[site]), round(int(busy[site]) / 1000))
        for site in changed.tolist()
    )


def _totals(body: Body, sites: int) -> tuple[Ints, Ints, Ints]:
    """Calls, bytes of HBM, and picoseconds of engines and DMA, of each line."""
    line = body.rows[:, SITE].astype(np.int64)
    moved = body.kind_column([_hbm_bytes(kind.transfer) if kind.transfer else 0 for kind in body.kinds])
    busy = body.kind_column(_busy_ps(body))
    return np.bincount(line, minlength=sites), _by_line(line, moved, sites), _by_line(line, busy, sites)


def _by_line(line: Ints, values: Ints, sites: int) -> Ints:
    return np.asarray(np.bincount(line, weights=values, minlength=sites).astype(np.int64))


def _hbm_bytes(transfer: Transfer) -> int:
    ends = transfer.source_memory, transfer.destination_memory
    return transfer.bytes * sum(end is Memory.HBM for end in ends)


def _busy_ps(body: Body) -> list[int]:
    """Time of its engine, or of the DMA engines, that each kind takes."""
    trigger = [trigger_engine(kind.transfer) if kind.transfer else Engine.SYNC for kind in body.kinds]
    costs = kind_costs(body.kinds, body.core, trigger)
    return [
        int(costs.transfer[number] if kind.transfer else costs.interval[number, choices(kind)[0]])
        for number, kind in enumerate(body.kinds)
    ]
