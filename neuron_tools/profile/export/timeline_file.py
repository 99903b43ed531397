"""The frame that trace formats share: a file that appears whole or not at all, filled with a timeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import BinaryIO

from neuron_tools.profile.export.destination import new_file
from neuron_tools.profile.export.exporter import Export, exporter
from neuron_tools.profile.export.report import Progress
from neuron_tools.profile.export.source import ProfileSource
from neuron_tools.profile.export.timeline import TimelineSink
from neuron_tools.profile.export.timeline_writer import write_timeline

OpenSink = Callable[[BinaryIO], "AbstractContextManager[TimelineSink]"]
"""Begins a file of a format; the block's end completes it."""


def timeline_exporter(open_sink: OpenSink) -> Export:
    """The exporter of a trace format; with the option `flows=False` dependencies are not drawn as arrows."""

    @exporter(new_file)
    def export(
        profile: ProfileSource, stream: BinaryIO, progress: Progress | None, *, flows: bool = True
    ) -> Mapping[str, int]:
        """Writes a profile's timeline as a trace; counts are slices, counters (samples), flows and tracks."""
        with open_sink(stream) as sink:
            return write_timeline(profile, sink, flows=flows, progress=progress)

    return export
