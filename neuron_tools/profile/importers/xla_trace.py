"""JAX and XLA: the `.trace.json.gz` that the profiler writes beside its `.xplane.pb`.

Chrome trace events whose processes are the host and the devices (`/device:TPU:0`), with lines such as
`XLA Ops` as threads.
"""

from __future__ import annotations

from typing import Any

from neuron_tools.profile.importers.chrome import ChromeDialect
from neuron_tools.profile.importers.chrome_trace import read_events
from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.json_rows import JsonRows
from neuron_tools.profile.importers.names import device_of_plane, places, xla_function_place
from neuron_tools.profile.importers.recording import Recording
from neuron_tools.profile.importers.trace_file import TraceFile

NAME = "XLA trace JSON"


def recognise(head: Head) -> bool:
    """Whether the file's beginning names planes of XLA's profiler."""
    return "traceEvents" in head.json_keys | _seen(head) and (
        b"/host:" in head.text or b"/device:" in head.text or b'"highres-ticks"' in head.text
    )


def read(file: TraceFile, recording: Recording) -> None:
    """Stages the trace."""
    read_events(file, recording, XlaDialect())


class XlaDialect(ChromeDialect):
    """Processes named after planes: those of devices stand under the host's."""

    def columns(self, rows: JsonRows, arguments: JsonRows) -> dict[str, Any]:
        """Source lines of Python functions."""
        place = places(rows.texts("name"), xla_function_place)
        return {} if place is None else {"source_file": place[0], "source_line": place[1]}

    def device_of(self, pid: str, name: str | None, labels: str | None) -> int | None:
        """The number at the end of `/device:TPU:0`."""
        return None if name is None else device_of_plane(name)


def _seen(head: Head) -> set[str]:
    return {"traceEvents"} if b'"traceEvents"' in head.text else set()
