"""The order of issue and the engine of every call, chosen together (list scheduling).

What the traces of eight Trn2 kernels show: the order on each engine is static and follows a table of costs;
open copies go to whichever of Scalar and Vector finishes first, Scalar first; nothing computes on GpSimd;
loads are sorted by first use; there is no modulo schedule. Ties follow program order, which reproduces more
of the traced order than the critical path does.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.backend.allocate import Places
from neuron_tools.backend.body import FIRST_WRITE, KIND, Body
from neuron_tools.backend.costs import choices, kind_costs, on_engine
from neuron_tools.backend.kinds import Kind, Transfer
from neuron_tools.backend.order import Order, find_order
from neuron_tools.errors import NeuronToolsError
from neuron_tools.records.program import Engine, Memory

SIGNAL_PS = 35_000
"""From a result to the engine that waits for it: 33 to 37 ns in the Trn2 traces."""
TRANSFER_PS = 1_850_000
"""From a DMA's trigger to its completion beside its bytes: 1.85 us in the Trn2 traces."""


def trigger_engine(transfer: Transfer) -> Engine:
    """The engine that starts a transfer.

    Loads start on Sync and stores on GpSimd, so that a store that waits for its data never holds the loads
    behind it.
    """
    if transfer.descriptors_by == "software":
        return Engine.GPSIMD
    loads = transfer.source_memory is Memory.HBM and transfer.destination_memory is not Memory.HBM
    return transfer.engine or (Engine.SYNC if loads else Engine.GPSIMD)


def schedule(body: Body, places: Places) -> Body:
    """The calls in the order of issue, each on an engine.

    Raises:
        NeuronToolsError: The kernel asks for an order that contradicts itself.
    """
    from neuron_tools.backend.schedule_kernel import list_schedule

    if not len(body):
        return body
    order = find_order(body, places)
    trigger = [trigger_engine(k.transfer) if k.transfer else Engine.SYNC for k in body.kinds]
    costs = kind_costs(body.kinds, body.core, trigger)
    issued, engine = list_schedule(
        np.ascontiguousarray(body.rows[:, KIND]), _ranks(body, order, costs.loads), costs.interval,
        costs.latency, costs.preferred, costs.transfer, costs.loads, order.start, order.edge_of, order.after,
        order.what, order.incoming.copy(), SIGNAL_PS, TRANSFER_PS,
    )  # fmt: skip
    if len(issued) < len(body):
        raise NeuronToolsError("the kernel asks for an order of its instructions that contradicts itself")
    return with_engines(body, engine).ordered_by(issued)


def _ranks(body: Body, order: Order, loads: np.ndarray) -> Ints:
    """Program order, in which a load stands just before the first call that uses what it brings."""
    count = len(body)
    key = 2 * np.arange(count, dtype=np.int64) + 1
    is_load = loads[body.rows[:, KIND]]
    first = np.full(count, 2 * count, np.int64)
    inside = (order.before < count) & (order.after < count)
    of_load = inside & is_load[np.minimum(order.before, count - 1)]
    np.minimum.at(first, order.before[of_load], 2 * order.after[of_load])
    key[is_load] = np.maximum(first, 0)[is_load]
    rank = np.empty(count, np.int64)
    rank[np.argsort(key, kind="stable")] = np.arange(count)
    return rank


def with_engines(body: Body, engine: np.ndarray) -> Body:
    """The body with a kind of its own for every choice that was made."""
    kinds, rows = list(body.kinds), body.rows.copy()
    for number, kind in enumerate(body.kinds):
        if not kind.engines:
            continue
        chosen = rows[:, KIND] == number
        for option in choices(kind):
            here = chosen & (engine == int(option))
            if here.any():
                rows[here, KIND] = add_kind(kinds, on_engine(kind, option))
    return replace(body, kinds=kinds, rows=rows)


def add_kind(kinds: list[Kind], kind: Kind) -> int:
    """Append a kind; returns its number."""
    kind.number = len(kinds)
    kinds.append(kind)
    return kind.number


def with_preferred_engines(body: Body) -> Body:
    """The body in the kernel's order, with the engine that an open choice takes without a schedule."""
    engine = np.array([int(choices(k)[-1]) if k.engines else -1 for k in body.kinds], np.int64)
    return with_engines(body, engine[body.rows[:, KIND]]) if len(body) else body


__all__ = ["FIRST_WRITE", "add_kind", "schedule", "trigger_engine", "with_engines", "with_preferred_engines"]
