"""Chrome trace JSON in general, in its array and object forms, from whichever producer."""

from __future__ import annotations

from typing import Any

from neuron_tools.profile.importers.chrome_trace import read_events
from neuron_tools.profile.importers.dialect import Dialect
from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.recording import Clock, Recording
from neuron_tools.profile.importers.trace_file import TraceFile

NAME = "Chrome trace"
YEAR_2001_NS = 1_000_000_000 * 1_000_000_000
"""Times above it can only be counted from 1970."""

_EVENT_KEYS = frozenset({"ph", "ts", "pid"})
_DOCUMENT_KEYS = frozenset(
    {"traceEvents", "displayTimeUnit", "systemTraceEvents", "stackFrames", "otherData"}
)


def recognise(head: Head) -> bool:
    """Whether a file's beginning is that of trace events, alone in a list or inside an object."""
    if head.is_list:
        return len(head.json_keys & _EVENT_KEYS) >= 2 or head.text[1:].strip() in (b"]", b"")
    return bool(head.json_keys & _DOCUMENT_KEYS) or b'"traceEvents"' in head.text


def read(file: TraceFile, recording: Recording) -> None:
    """Stages the trace."""
    read_events(file, recording, ChromeDialect())


class ChromeDialect(Dialect):
    """What is told by any producer: the epoch, where the times can only be counted from 1970."""

    def finish(self, recording: Recording) -> None:
        """Tells the clock."""
        is_absolute = (recording.first_ns or 0) > YEAR_2001_NS
        recording.clock = Clock(unix_ns=0 if is_absolute else None)

    def add_header(self, key: str, value: Any) -> None:
        """Nothing of it is needed."""
