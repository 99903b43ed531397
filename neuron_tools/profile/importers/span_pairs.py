"""Which end belongs to which begin, and which span a flow event is tied to."""

from __future__ import annotations

import numpy as np

from neuron_tools.arrays import Bools, Ints
from neuron_tools.compiled import compiled

NONE = -1


@compiled
def match_ends(lane: Ints, is_begin: Bools, lanes: int) -> Ints:
    """Ties each end to the innermost open begin of its lane.

    Args:
        lane: int64, shape (events,), each below `lanes`: events of different lanes do not meet.
        is_begin: bool, shape (events,): begin or end, in order of time within each lane.

    Returns:
        int64, shape (events,): the begin of each end, NONE for one without; the end of each begin, NONE for
        one that stays open.
    """
    partner = np.full(len(lane), NONE, np.int64)
    below = np.full(len(lane), NONE, np.int64)
    top = np.full(lanes, NONE, np.int64)
    for event in range(len(lane)):
        place = lane[event]
        if is_begin[event]:
            below[event] = top[place]
            top[place] = event
        elif top[place] >= 0:
            begin = top[place]
            partner[event] = begin
            partner[begin] = event
            top[place] = below[begin]
    return partner


@compiled
def enclosing_spans(start_ns: Ints, end_ns: Ints, first: int, last: int, times: Ints, found: Ints) -> None:
    """The innermost span of one track that holds each time; NONE where there is none.

    Args:
        start_ns, end_ns: int64, shape (spans,); those of the track are first..last, by start ascending,
            then end descending.
        times: int64, shape (times,), ascending.
        found: int64, shape (times,): receives the index of the span.
    """
    parent = np.full(last - first, NONE, np.int64)
    span, innermost = first, NONE
    for index in range(len(times)):
        time = times[index]
        while span < last and start_ns[span] <= time:
            while innermost >= 0 and end_ns[innermost] < start_ns[span]:
                innermost = parent[innermost - first]
            parent[span - first] = innermost
            innermost = span
            span += 1
        while innermost >= 0 and end_ns[innermost] < time:
            innermost = parent[innermost - first]
        found[index] = innermost
