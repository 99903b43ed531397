"""Where PSUM is full, calls that empty it move up to right behind the sums that they read.

A kernel may make all sums of a block first and copy them out in a loop of its own. In its order they all
live at one time; a call that reads PSUM and writes SBUF may run as soon as its operands are complete.
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
    place = _places(body, _empties(body))
    order = np.argsort(place, kind="stable")
    moves = bool((order != np.arange(len(order))).any())
    return body.ordered_by(order) if moves else body


def _empties(body: Body) -> npt.NDArray[np.bool_]:
    """Whether each call computes from PSUM and writes SBUF alone. Shape (calls,)."""
    named = body.rows[:, FIRST_WRITE:]
    memory = np.where(named >= 0, body.buffers.memory[body.regions[named, BUFFER]], int(Memory.NONE))
    written, read = np.split(memory, [FIRST_READ - FIRST_WRITE], axis=1)
    only_sbuf = np.isin(written, [int(Memory.SBUF), int(Memory.NONE)]).all(axis=1)
    only_sbuf &= (written == int(Memory.SBUF)).any(axis=1)
    computes = body.kind_column([kind.transfer is None for kind in body.kinds]) != 0
    return np.asarray(computes & only_sbuf & (read == int(Memory.PSUM)).any(axis=1))


def _places(body: Body, moving: npt.NDArray[np.bool_]) -> Ints:
    """The call behind which each stands: itself, or for one that moves the last that it depends on."""
    place = np.arange(len(body), dtype=np.int64)
    place[moving] = 0
    for before, after in zip(*(edges.tolist() for edges in data_edges(body))):
        if moving[after] and place[before] > place[after]:
            place[after] = place[before]
    return place
