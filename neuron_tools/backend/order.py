"""The order that every schedule keeps, as edges by producer."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Int32s, Ints
from neuron_tools.backend.allocate import Places
from neuron_tools.backend.body import BUFFER, FIRST_READ, FIRST_WRITE, Body
from neuron_tools.frozen import frozen


@frozen
class Order:
    """Edges by producer. Nodes are the calls, then the releases of buffers.

    Attributes:
        start: (nodes + 1,) where the edges of each node begin in `edge_of`.
        edge_of: Edges by producer.
        before, after: (edges,) nodes.
        what: (edges,) AFTER_RESULT or AFTER_START.
        incoming: (nodes,) edges that lead to each.
    """

    start: Ints
    edge_of: Int32s
    before: Ints
    after: Ints
    what: npt.NDArray[np.int8]
    incoming: npt.NDArray[np.int32]


def written_buffers(body: Body) -> npt.NDArray[np.bool_]:
    """Whether some call writes each buffer."""
    written = np.zeros(len(body.buffers), bool)
    for slot in range(FIRST_WRITE, FIRST_READ):
        touched = body.rows[:, slot]
        written[body.regions[touched[touched >= 0], BUFFER]] = True
    return written


def bucket_starts(body: Body) -> Ints:
    """First bucket of lines of each buffer, and their number at the end."""
    from neuron_tools.backend.access_lists import BUCKET_LINES

    start = np.zeros(len(body.buffers) + 1, np.int64)
    np.cumsum(-(-body.buffers.lines // BUCKET_LINES) + 1, out=start[1:])
    return start


def find_order(body: Body, places: Places) -> Order:
    """What must come before what: by data, by place, and as the kernel asks."""
    from neuron_tools.backend.order_kernel import order_edges, successors

    released = np.zeros(len(body.buffers), bool)
    released[places.predecessors] = True
    before, after, what = order_edges(
        body.rows, body.regions, written_buffers(body), bucket_starts(body), released,
        places.predecessor_start, places.predecessors,
    )  # fmt: skip
    asked = _asked(body)
    if len(asked):
        before, after = np.concatenate([before, asked[:, 0]]), np.concatenate([after, asked[:, 1]])
        what = np.concatenate([what, np.zeros(len(asked), np.int8)])
    start, edge_of, incoming = successors(len(body) + len(body.buffers), before, after)
    return Order(start, edge_of, before, after, what, incoming)


def data_edges(body: Body) -> tuple[Ints, Ints]:
    """(producers, consumers) of what must come before what by data alone; consumers ascend."""
    from neuron_tools.backend.order_kernel import order_edges

    count = len(body.buffers)
    nothing = np.zeros(count + 1, np.int64)
    before, after, _ = order_edges(
        body.rows, body.regions, written_buffers(body), bucket_starts(body), np.zeros(count, bool), nothing,
        np.zeros(0, np.int64),
    )  # fmt: skip
    return before, after


def _asked(body: Body) -> Ints:
    """(before, after) of the calls that the kernel ordered itself."""
    if not body.ties and not body.ordered:
        return np.zeros((0, 2), np.int64)
    own = body.origin >= 0
    at = np.full(int(body.origin.max(initial=-1)) + 1, -1, np.int64)
    at[body.origin[own]] = np.flatnonzero(own)
    pairs = [(at[first], at[later]) for later, first in body.ties if max(later, first) < len(at)]
    for first, end in body.ordered:
        kept = at[first:end]
        kept = np.sort(kept[kept >= 0])
        pairs += zip(kept[:-1].tolist(), kept[1:].tolist())
    found = np.array(pairs, np.int64).reshape(-1, 2)
    return found[(found >= 0).all(axis=1)]
