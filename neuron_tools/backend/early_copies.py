"""Where PSUM is full, calls that empty it move up to right behind the sums that they read.

A kernel may make all sums of a block first and use them up in loops of their own. In its order they all
live at one time; a call that reads PSUM and writes SBUF may run as soon as its operands are complete, and so
may what it needs from other computations, such as the maximum that a softmax subtracts. Stores follow, so
that the results do not fill SBUF in turn; loads stay where they are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.backend.body import BUFFER, FIRST_READ, FIRST_WRITE, Body
from neuron_tools.backend.order import data_edges
from neuron_tools.records.program import Memory


def empty_early(body: Body) -> Body:
    """The body with calls from PSUM to SBUF as early as their operands allow; itself where none moves."""
    if not body.is_open:
        return body
    place = _places(body)
    order = np.argsort(place, kind="stable")
    moves = bool((order != np.arange(len(order))).any())
    return body.ordered_by(order) if moves else body


def _places(body: Body) -> Ints:
    """The call behind which each stands: itself, or for one that moves the last that it depends on."""
    edges = list(zip(*(ends.tolist() for ends in data_edges(body))))
    written, read = _memories(body)
    moving = _moving(body, written, read, edges)
    place = np.arange(len(body), dtype=np.int64)
    place[moving] = 0
    for before, after in edges:
        if moving[after] and place[before] > place[after]:
            place[after] = place[before]
    return place


def _moving(body: Body, written: Ints, read: Ints, edges: list[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    """Whether each call empties PSUM, computes for one that does, or stores. Shape (calls,)."""
    computes = body.kind_column([kind.transfer is None for kind in body.kinds]) != 0
    only_sbuf = np.isin(written, [int(Memory.SBUF), int(Memory.NONE)]).all(axis=1)
    computes &= only_sbuf & (written == int(Memory.SBUF)).any(axis=1)
    moving = computes & (read == int(Memory.PSUM)).any(axis=1)
    for before, after in reversed(edges):
        if moving[after] and computes[before]:
            moving[before] = True
    return np.asarray(moving | _stores(body))


def _stores(body: Body) -> npt.NDArray[np.bool_]:
    """Whether each call is a transfer from SBUF to HBM. Shape (calls,)."""
    ways = [kind.transfer and (kind.transfer.source_memory, kind.transfer.destination_memory)
            for kind in body.kinds]  # fmt: skip
    return np.asarray(body.kind_column([way == (Memory.SBUF, Memory.HBM) for way in ways]) != 0)


def _memories(body: Body) -> tuple[Ints, Ints]:
    """Memory of the regions that each call writes and reads; NONE where it has fewer."""
    named = body.rows[:, FIRST_WRITE:]
    memory = np.where(named >= 0, body.buffers.memory[body.regions[named, BUFFER]], int(Memory.NONE))
    written, read = np.split(memory, [FIRST_READ - FIRST_WRITE], axis=1)
    return written, read
