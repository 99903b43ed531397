"""The frame that trace formats share: a file that appears whole or not at all, filled with a timeline."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from neuron_tools.profile.export.destination import new_file
from neuron_tools.profile.export.report import ExportReport, Progress
from neuron_tools.profile.export.source import ProfileSource
from neuron_tools.profile.export.timeline import TimelineSink
from neuron_tools.profile.export.timeline_writer import write_timeline

OpenSink = Callable[[BinaryIO], "AbstractContextManager[TimelineSink]"]
"""Begins a file of a format; the block's end completes it."""


def export_timeline(
    profile: ProfileSource,
    destination_path: str | Path,
    open_sink: OpenSink,
    *,
    progress: Progress | None = None,
    flows: bool = True,
    force: bool = False,
) -> ExportReport:
    """Writes a profile's timeline as a trace.

    Args:
        profile: The profile to export.
        destination_path: File to make.
        open_sink: The format.
        progress: Told (rows done, rows in all) as the export goes.
        flows: Whether to draw dependencies as arrows.
        force: Whether to replace an existing file.

    Returns:
        The file, and how many slices, counters (samples), flows and tracks it holds.

    Raises:
        UsageError: The file exists and `force` is False, or its folder does not exist.
        ExportError: The file could not be written.
    """
    path = Path(destination_path)
    with new_file(path, force=force) as stream, open_sink(stream) as sink:
        counts = write_timeline(profile, sink, flows=flows, progress=progress)
    return ExportReport((path,), counts)
