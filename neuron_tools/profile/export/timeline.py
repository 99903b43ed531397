"""The timeline that Perfetto and Chrome traces share: a tree of tracks, slices on them, counters, flows.

A format implements `TimelineSink`; what goes onto which track is decided in `timeline_sources` and
`timeline_writer`, once for all formats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen

END_OF_SLICE = -1
TEXTS = pa.dictionary(pa.int32(), pa.string())


class TrackKind(Enum):
    """What a track holds. A CORE orders what stands below it by rank, a GROUP by name."""

    PROCESS = "process"
    THREAD = "thread"
    CORE = "core"
    GROUP = "group"
    SLICES = "slices"
    COUNTER = "counter"


@frozen
class Track:
    """A row of the timeline, or a heading above rows.

    Attributes:
        uid: Number > 0, unique in the export.
        name: What the reader sees; lanes of one track share their name.
        parent: The heading it stands under; None for a process.
        rank: Place among its siblings, smallest first.
        process_id: Of the process that it belongs to.
        thread_id: Of a THREAD; unique in the export. 0 elsewhere.
        unit: Of a COUNTER's values.
        device_idx: Device whose work an imported trace's track shows; None for the host.
        stream: Number of the device's stream; None if it is none.
    """

    uid: int
    name: str
    kind: TrackKind
    parent: Track | None
    rank: int
    process_id: int
    thread_id: int = 0
    unit: str = ""
    device_idx: int | None = None
    stream: int | None = None


@frozen
class Slices:
    """Spans of one track, in order of start, column by column; every column has one entry a span.

    Texts are dictionary arrays (int32 codes into different texts): both formats write each text once.

    Attributes:
        start_ns, end_ns: int64, from the profile's start.
        name: Texts without nulls.
        arguments: Label -> text, integer or floating column; null = the span has no such argument.
        source_file: Texts; null = unknown.
        source_line: int64 array; null or 0 = unknown.
        category: Texts; null = none.
        arguments_json: Texts of JSON objects with further arguments; null = none.
        flow_out, flow_in: Lists of uint64 flow numbers that start and end here; None = no flows.
    """

    start_ns: Ints
    end_ns: Ints
    name: pa.Array
    arguments: Mapping[str, pa.Array] = field(default_factory=dict)
    source_file: pa.Array | None = None
    source_line: pa.Array | None = None
    flow_out: pa.Array | None = None
    flow_in: pa.Array | None = None
    category: pa.Array | None = None
    arguments_json: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.start_ns)

    @classmethod
    def none(cls) -> Slices:
        """No spans at all."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), pa.array([], TEXTS))

    def take(self, rows: Ints) -> Slices:
        """The given rows, in the given order."""
        index = pa.array(rows)
        optional = (
            self.source_file,
            self.source_line,
            self.flow_out,
            self.flow_in,
            self.category,
            self.arguments_json,
        )
        taken = [None if column is None else column.take(index) for column in optional]
        arguments = {label: column.take(index) for label, column in self.arguments.items()}
        return Slices(self.start_ns[rows], self.end_ns[rows], self.name.take(index), arguments, *taken)


@frozen
class SliceEvents:
    """The begins and ends of slices on the lanes of a track, each lane's in the order in which they happen.

    Attributes:
        time_ns: int64, shape (events,), ascending within a lane.
        row: int64, shape (events,): the row of `Slices` that begins, or END_OF_SLICE for the end of the
            slice that is open innermost on its lane (which may have begun in an earlier batch).
        lane: int32, shape (events,): index into the track's lanes.
    """

    time_ns: Ints
    row: Ints
    lane: npt.NDArray[np.int32]


class TimelineSink(Protocol):
    """A trace format being written."""

    def add_track(self, track: Track) -> None:
        """Declares a track; its parent was declared before it."""
        ...

    def add_slices(self, lanes: Sequence[Track], slices: Slices, events: SliceEvents) -> None:
        """Adds slices to the lanes of a track (THREAD or SLICES); a lane's batches come in order of time."""
        ...

    def add_counter(self, track: Track, time_ns: Ints, values: npt.NDArray[np.float64]) -> None:
        """Adds samples to a COUNTER track; batches come in order of time."""
        ...
