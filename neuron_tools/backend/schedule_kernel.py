"""Compiled list scheduling: which engine runs which call next.

The call that can start earliest goes first; of those that can start at once, the first in program order. A
call that several engines can run goes to the one that finishes it earliest.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Int32s, Ints
from neuron_tools.backend.order_kernel import AFTER_START
from neuron_tools.compiled import compiled, compiled_part

ENGINES = 5
_NEVER = np.int64(1) << 62


@compiled_part
def _push(keys: Ints, ranks: Ints, size: int, key: int, rank: int) -> None:
    """Add to a heap of (key, rank) with `size` entries."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if keys[parent] < key or (keys[parent] == key and ranks[parent] <= rank):
            break
        keys[at], ranks[at] = keys[parent], ranks[parent]
        at = parent
    keys[at], ranks[at] = key, rank


@compiled_part
def _pop(keys: Ints, ranks: Ints, size: int) -> None:
    """Remove the least entry of a heap with `size` entries."""
    last = size - 1
    key, rank = keys[last], ranks[last]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= last:
            break
        right = child + 1
        if right < last and (
            keys[right] < keys[child] or (keys[right] == keys[child] and ranks[right] < ranks[child])
        ):
            child = right
        if key < keys[child] or (key == keys[child] and rank <= ranks[child]):
            break
        keys[at], ranks[at] = keys[child], ranks[child]
        at = child
    keys[at], ranks[at] = key, rank


@compiled
def list_schedule(
    kind: Int32s,
    rank: Ints,
    interval: Ints,
    latency: Ints,
    preferred: Ints,
    transfer: Ints,
    loads: npt.NDArray[np.bool_],
    start: Ints,
    edge_of: Int32s,
    after: Ints,
    what: npt.NDArray[np.int8],
    incoming: Int32s,
    signal_ps: int,
    transfer_ps: int,
) -> tuple[Ints, npt.NDArray[np.int8]]:
    """Order in which the calls are issued, and the engine of each call.

    Args:
        kind: (calls,) kind of each.
        rank: (calls,) place in the order that ties follow; a permutation.
        interval, latency, preferred, transfer, loads: `costs.KindCosts`.
        start, edge_of, after, what, incoming: Edges by producer; nodes beyond the calls cost nothing.
        signal_ps: From a result to the engine that waits for it.
        transfer_ps: From a DMA's trigger to its completion, beside its bytes.

    Returns:
        (order (calls,), engine (calls,)); fewer where the edges run in a circle.
    """
    count, nodes = kind.shape[0], incoming.shape[0]
    row_of = np.empty(count, np.int64)
    capacity = np.zeros(ENGINES, np.int64)
    for row in range(count):
        row_of[rank[row]] = row
        for engine in range(ENGINES):
            if interval[kind[row], engine] >= 0:
                capacity[engine] += 1
    base = np.zeros(ENGINES + 1, np.int64)
    for engine in range(ENGINES):
        base[engine + 1] = base[engine] + capacity[engine] + 1
    keys, ranks = np.empty((2, base[-1]), np.int64), np.empty((2, base[-1]), np.int64)
    size = np.zeros((2, ENGINES), np.int64)  # waiting by time, ready by rank
    ready = np.zeros(nodes, np.int64)
    free = np.zeros(ENGINES, np.int64)
    moved = np.zeros(2, np.int64)  # when the DMA engines are through with stores, loads
    done = np.zeros(count, np.bool_)
    order = np.empty(count, np.int64)
    chosen = np.full(count, -1, np.int8)
    stack = np.empty(nodes + 1, np.int64)
    top = 0
    issued = 0
    for node in range(nodes):
        if incoming[node] == 0:
            stack[top] = node
            top += 1
    while True:
        while top > 0:
            top -= 1
            node = stack[top]
            if node >= count:
                for place in range(start[node], start[node + 1]):
                    other = after[edge_of[place]]
                    ready[other] = max(ready[other], ready[node])
                    incoming[other] -= 1
                    if incoming[other] == 0:
                        stack[top] = other
                        top += 1
                continue
            for engine in range(ENGINES):
                if interval[kind[node], engine] >= 0:
                    low, high = base[engine], base[engine + 1]
                    _push(keys[0, low:high], ranks[0, low:high], size[0, engine], ready[node], rank[node])
                    size[0, engine] += 1
        best, best_time, best_rank = -1, _NEVER, _NEVER
        for engine in range(ENGINES):
            low, high = base[engine], base[engine + 1]
            while size[0, engine] > 0 and keys[0, low] <= free[engine]:
                waiting = ranks[0, low]
                _pop(keys[0, low:high], ranks[0, low:high], size[0, engine])
                size[0, engine] -= 1
                if not done[row_of[waiting]]:
                    _push(keys[1, low:high], ranks[1, low:high], size[1, engine], 0, waiting)
                    size[1, engine] += 1
            while size[1, engine] > 0 and done[row_of[ranks[1, low]]]:
                _pop(keys[1, low:high], ranks[1, low:high], size[1, engine])
                size[1, engine] -= 1
            if size[1, engine] > 0:
                time, first = free[engine], ranks[1, low]
            elif size[0, engine] > 0:
                time, first = keys[0, low], ranks[0, low]
            else:
                continue
            if time < best_time or (time == best_time and first < best_rank):
                best, best_time, best_rank = engine, time, first
        if best < 0:
            break
        row = row_of[best_rank]
        low, high = base[best], base[best + 1]
        which = 1 if size[1, best] > 0 else 0
        _pop(keys[which, low:high], ranks[which, low:high], size[which, best])
        size[which, best] -= 1
        if done[row]:
            continue
        number = kind[row]
        finish = best_time + latency[number, best]
        better = best
        for engine in range(ENGINES):
            if chosen[row] < 0 and engine != best and interval[number, engine] >= 0:
                other_finish = max(free[engine], ready[row]) + latency[number, engine]
                if other_finish < finish or (other_finish == finish and engine == preferred[number]):
                    better, finish = engine, other_finish
        if better != best:  # it stays in that engine's heap
            chosen[row] = better
            continue
        if chosen[row] >= 0 and chosen[row] != best:
            continue
        done[row] = True
        chosen[row] = best
        order[issued] = row
        issued += 1
        next_free = best_time + interval[number, best]
        if transfer[number] >= 0:
            lane = 1 if loads[number] else 0
            finish = max(finish + transfer_ps, moved[lane]) + transfer[number]
            moved[lane] = finish
        free[best] = next_free
        for place in range(start[row], start[row + 1]):
            edge = edge_of[place]
            other = after[edge]
            time = finish + signal_ps
            pipelined = what[edge] == AFTER_START and transfer[number] < 0
            if pipelined and other < count and interval[kind[other], best] >= 0:
                time = next_free
            ready[other] = max(ready[other], time)
            incoming[other] -= 1
            if incoming[other] == 0:
                stack[top] = other
                top += 1
    return order[:issued], chosen
