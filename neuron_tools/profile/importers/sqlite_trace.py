"""Traces in SQLite databases: which tool's they are is told by their tables."""

from __future__ import annotations

from neuron_tools.profile.importers import ascend_db, nsys, rocpd, rpd
from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.recording import Recording
from neuron_tools.profile.importers.sqlite_file import MAGIC, SqliteFile, opened
from neuron_tools.profile.importers.trace_file import TraceFile

NAME = "SQLite of Nsight Systems, rocprofiler-sdk (rocpd), ROCm Profile Data or an Ascend profiler"
_TOOLS = (nsys, ascend_db, rocpd, rpd)
_MOST_NAMES = 3


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
        tables = _tables(database)
    raise TraceError(
        f"{file.path} is a SQLite database without a trace ({tables}): import what "
        "`nsys export --type sqlite`, `rocprofv3 --output-format rocpd`, ROCm Profile Data or an Ascend "
        "profiler writes."
    )


def _tables(database: SqliteFile) -> str:
    names = sorted(database.columns)
    if not names:
        return "it has no tables"
    shown = ", ".join(ascii(name[:40])[1:-1] for name in names[:_MOST_NAMES])
    return f"its tables: {shown}{', ...' if len(names) > _MOST_NAMES else ''}"
