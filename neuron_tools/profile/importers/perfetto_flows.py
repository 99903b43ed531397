"""Flows of Perfetto events: spans that carry the same number follow each other in time."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Bools, Ints
from neuron_tools.profile.importers.protobuf_fields import Messages
from neuron_tools.profile.importers.recording import Recording
from neuron_tools.profile.importers.spans import stage_flows
from neuron_tools.profile.perfetto_fields import field_number

_number = partial(field_number, "TrackEvent")
FIELDS = tuple(_number(field) for field in ("flow_ids", "flow_ids_old"))
ENDING_FIELDS = tuple(_number(field) for field in ("terminating_flow_ids", "terminating_flow_ids_old"))


class PerfettoFlows:
    """Gathers the numbers of flows, and at the end makes Flow rows of them."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._parts: list[tuple[npt.NDArray[Any], ...]] = []

    def add(self, events: Messages, rows: Ints, ids: Ints, is_begin: Bools, time_ns: Ints) -> None:
        """Adds the flows of some events.

        Args:
            events: Track events.
            rows: int64, shape (spans,): those of them that begin or end spans.
            ids, is_begin, time_ns: shape (spans,): id of the span, whether it begins here, and when.
        """
        place = np.full(len(events), -1, np.int64)
        place[rows] = np.where(is_begin, np.arange(len(rows)), -1)
        for fields, is_ending in ((FIELDS, False), (ENDING_FIELDS, True)):
            for field in fields:
                owner, numbers = events.numbers(field)
                known = place[owner] >= 0
                if known.any():
                    own = place[owner[known]]
                    ending = np.full(len(own), is_ending)
                    self._parts.append((numbers[known], time_ns[own], ids[own], ending))

    def finish(self) -> None:
        """Stages the Flow rows: an edge from each span of a flow to the next, until one ends it."""
        if not self._parts:
            return
        number, time_ns, span, ending = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        order = np.lexsort((span, time_ns, number))
        number, span, ending = number[order], span[order], ending[order]
        follows = (number[1:] == number[:-1]) & ~ending[:-1] & (span[1:] != span[:-1])
        source, target = span[:-1][follows], span[1:][follows]
        stage_flows(self._recording, source, target)
