"""Perfetto traces (`.pftrace`): https://perfetto.dev/docs/reference/synthetic-track-event.

Descriptors are built with the generated classes of the `perfetto` package; slices, by far the most, are
encoded by compiled code (see `slice_kernel`). A batch of slices is a stretch of the packet sequence of its
first track: it clears the sequence's incremental state and interns its own strings, so that neither this
writer nor a reader holds more than a batch's strings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.profile.export.event_columns import EventColumns
from neuron_tools.profile.export.formats import ExportFormat
from neuron_tools.profile.export.perfetto_packets import (
    counter_packets,
    state_packet,
    track_packet,
)
from neuron_tools.profile.export.timeline import SliceEvents, Slices, Track
from neuron_tools.profile.export.timeline_file import timeline_exporter
from neuron_tools.profile.export.writing_thread import Buffer, WritingThread


@contextmanager
def _opened(stream: BinaryIO) -> Iterator[PerfettoSink]:
    with WritingThread(stream) as thread:
        yield PerfettoSink(thread)


export_perfetto = timeline_exporter(_opened)


class PerfettoSink:
    """A timeline as a stream of Perfetto packets, encoded while the next rows are read."""

    def __init__(self, thread: WritingThread) -> None:
        self._thread = thread

    def add_track(self, track: Track) -> None:
        """Writes the track's descriptor."""
        self._thread.write(lambda: [track_packet(track)])

    def add_slices(self, lanes: Sequence[Track], slices: Slices, events: SliceEvents) -> None:
        """Writes one batch: fresh interned strings, then a packet for each begin and end."""
        lanes = list(lanes)
        self._thread.write(lambda: _slice_packets(lanes, slices, events))

    def add_counter(self, track: Track, time_ns: Ints, values: npt.NDArray[np.float64]) -> None:
        """Writes one batch of samples."""
        self._thread.write(lambda: [state_packet(track, b""), counter_packets(track, time_ns, values)])


def _slice_packets(lanes: Sequence[Track], slices: Slices, events: SliceEvents) -> Iterator[Buffer]:
    """A stretch of the packet sequence that has the number of the batch's first lane."""
    columns, sequence = EventColumns.of(slices), lanes[0]
    yield state_packet(sequence, columns.interned)
    track_uid = np.array([lane.uid for lane in lanes], np.int64)[events.lane]
    for packets in columns.packets(sequence.uid, events, track_uid):
        yield packets.data


FORMAT = ExportFormat(
    "Perfetto", ".pftrace", "Opens in ui.perfetto.dev, with counters and flows.", export_perfetto
)
