"""Traces in SQLite databases: which tool's they are is told by their tables."""

from __future__ import annotations

from neuron_tools.profile.importers import ascend_db, nsys
from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.recording import Recording
from neuron_tools.profile.importers.sqlite_file import MAGIC, opened
from neuron_tools.profile.importers.trace_file import TraceFile

NAME = "SQLite of Nsight Systems or an Ascend profiler"
_TOOLS = (nsys, ascend_db)


def recognise(head: Head) -> bool:
    """Whether the file is a SQLite database."""
    return head.content.startswith(MAGIC)


def read(file: TraceFile, recording: Recording) -> None:
    """Stages the trace.

    Raises:
        TraceError: The database is damaged, or is no tool's trace.
    """
    with opened(file, recording.folder) as database:
        for tool in _TOOLS:
            if tool.recognise(database):
                recording.format_name = tool.NAME
                tool.read(database, recording)
                return
    raise TraceError(
        f"{file.path} is a SQLite database without a trace: export one with `nsys export --type sqlite`, or "
        "take `ascend_pytorch_profiler.db` or `msprof.db` of an Ascend profiler."
    )
