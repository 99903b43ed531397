"""Spans of one track as columns, in order of start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.timeline.scan import TrackRows


@frozen
class Segment:
    """Spans of one track in ascending order of start, longer ones first where starts are equal.

    Attributes:
        start_ns, duration_ns, row: int64, shape (spans,).
        name: int32, shape (spans,).
        layer: int32, shape (spans,), or None.
    """

    start_ns: Ints
    duration_ns: Ints
    name: npt.NDArray[np.int32]
    row: Ints
    layer: npt.NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.start_ns)

    def take(self, chosen: Any) -> Segment:
        """The spans that a slice, a mask or an order chooses."""
        layer = None if self.layer is None else self.layer[chosen]
        return Segment(
            self.start_ns[chosen], self.duration_ns[chosen], self.name[chosen], self.row[chosen], layer
        )

    def apart(self) -> Segment:
        """The same; what is a small part of larger arrays is copied: it would keep them in memory."""
        layer = None if self.layer is None else _apart(self.layer)
        return Segment(
            _apart(self.start_ns), _apart(self.duration_ns), _apart(self.name), _apart(self.row), layer
        )

    def before(self, time_ns: int) -> tuple[Segment, Segment]:
        """The spans that start before a time, and the others."""
        cut = int(np.searchsorted(self.start_ns, time_ns))
        return self.take(slice(0, cut)), self.take(slice(cut, None))


def in_order(parts: Sequence[Segment | TrackRows]) -> Segment:
    """One segment of all parts, ordered by start and, at one start, the longest first."""
    segment = joined(parts)
    start, duration = segment.start_ns, segment.duration_ns
    later = start[1:] > start[:-1]
    if not later.all():
        tied = ~later & (start[1:] == start[:-1]) & (duration[1:] <= duration[:-1])
        if not (later | tied).all():
            return segment.take(np.lexsort((-duration, start)))
    return segment


def joined(parts: Sequence[Segment | TrackRows]) -> Segment:
    """One segment of parts that follow each other."""
    layers = [part.layer for part in parts if part.layer is not None]
    return Segment(
        np.concatenate([part.start_ns for part in parts]),
        np.concatenate([part.duration_ns for part in parts]),
        np.concatenate([part.name for part in parts]),
        np.concatenate([part.row for part in parts]),
        np.concatenate(layers) if layers else None,
    )


def _apart(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    base = values.base
    is_small_part = isinstance(base, np.ndarray) and 2 * values.nbytes < base.nbytes
    return values.copy() if is_small_part else values
