"""Spans that are told in two events: begun, and later ended, perhaps many chunks of the file apart."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.arrays import Bools, Ints
from neuron_tools.profile.importers.span_pairs import match_ends


class OpenSpans:
    """Keeps begun spans until their ends come.

    Attributes:
        unmatched_ends: Ends for which nothing was open.
    """

    def __init__(self) -> None:
        self.unmatched_ends = 0
        self._open: pa.Table | None = None
        self._open_lane: Ints = np.zeros(0, np.int64)

    def add(self, events: pa.Table, lane: Ints, is_begin: Bools) -> pa.Table | None:
        """Adds events in order.

        Args:
            events: Columns of the span, with its time as `start_ts`.
            lane: int64, shape (events,): an end closes the innermost open begin of its lane.
            is_begin: bool, shape (events,).

        Returns:
            The spans that are closed now, with `end_ts`, in order of their ends; None if there are none.
        """
        if self._open is not None:
            is_begin = np.concatenate([np.ones(self._open.num_rows, np.bool_), is_begin])
            lane = np.concatenate([self._open_lane, lane])
            events = pa.concat_tables([self._open, events], promote_options="default").unify_dictionaries()
        _, compact = np.unique(lane, return_inverse=True)
        partner = match_ends(compact.astype(np.int64), is_begin, int(compact.max(initial=0)) + 1)
        open_rows = np.flatnonzero(is_begin & (partner < 0))
        self._open = events.take(pa.array(open_rows)) if len(open_rows) else None
        self._open_lane = lane[open_rows]
        ends = np.flatnonzero(~is_begin & (partner >= 0))
        self.unmatched_ends += int(np.count_nonzero(~is_begin)) - len(ends)
        return _closed(events, partner[ends], ends) if len(ends) else None

    def left_open(self, end_ns: int) -> pa.Table | None:
        """What was never ended, as spans up to `end_ns`; None if nothing."""
        if self._open is None:
            return None
        end = np.maximum(self._open["start_ts"].to_numpy(), end_ns)
        return self._open.append_column("end_ts", pa.array(end))


def _closed(events: pa.Table, begins: Ints, ends: Ints) -> pa.Table:
    spans = events.take(pa.array(begins))
    spans = spans.append_column("end_ts", events["start_ts"].take(pa.array(ends)))
    added = events["arguments_json"].take(pa.array(ends))
    if added.null_count == len(added):
        return spans
    number = spans.schema.get_field_index("arguments_json")
    return spans.set_column(number, "arguments_json", _merged(spans["arguments_json"], added))


def _merged(first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.ChunkedArray:
    """Two JSON objects in one, row by row; null counts as an empty one."""
    inner = [pc.utf8_slice_codeunits(column, 1, -1) for column in (first, second)]
    both = pc.binary_join_element_wise("{", inner[0], ",", inner[1], "}", "")
    return pc.coalesce(both, first, second)
