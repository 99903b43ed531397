"""Perfetto traces (`.pftrace`): https://perfetto.dev/docs/reference/synthetic-track-event.

Descriptors are built with the generated classes of the `perfetto` package; slices, by far the most, are
encoded column by column (see `wire`). Every track, with all its lanes, is a packet sequence of its own. Each
batch on it clears the sequence's incremental state and interns its own strings again, so that neither this
writer nor a reader holds more than a batch's strings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from neuron_tools.profile.export.perfetto_packets import (
    counter_packets,
    slice_packets,
    state_packet,
    track_packet,
)
from neuron_tools.profile.export.report import ExportReport, Progress
from neuron_tools.profile.export.source import ProfileSource
from neuron_tools.profile.export.timeline import Int64Array, SliceEvents, Slices, Track
from neuron_tools.profile.export.timeline_file import export_timeline


def export_perfetto(
    profile: ProfileSource,
    destination_path: str | Path,
    *,
    progress: Progress | None = None,
    flows: bool = True,
    force: bool = False,
) -> ExportReport:
    """Writes a profile as a Perfetto trace; arguments, result and errors are those of `export_timeline`."""
    return export_timeline(profile, destination_path, _opened, progress=progress, flows=flows, force=force)


@contextmanager
def _opened(stream: BinaryIO) -> Iterator[PerfettoSink]:
    yield PerfettoSink(stream)


class PerfettoSink:
    """A timeline as a stream of Perfetto packets."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def add_track(self, track: Track) -> None:
        """Writes the track's descriptor."""
        self._stream.write(track_packet(track))

    def add_slices(self, lanes: Sequence[Track], slices: Slices, events: SliceEvents) -> None:
        """Writes one batch: fresh interned strings, then a packet for each begin and end."""
        for packets in slice_packets(lanes, slices, events):
            self._stream.write(packets)

    def add_counter(self, track: Track, time_ns: Int64Array, values: npt.NDArray[np.float64]) -> None:
        """Writes one batch of samples."""
        self._stream.write(state_packet(track, b""))
        self._stream.write(counter_packets(track, time_ns, values))
