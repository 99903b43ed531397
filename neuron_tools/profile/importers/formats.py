"""Which formats there are, and which of them a file is in. Asked of the content, never of the name."""

from __future__ import annotations

from typing import Protocol, cast

from neuron_tools.doors import Door
from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.recording import Recording
from neuron_tools.profile.importers.refused import refusal
from neuron_tools.profile.importers.trace_file import TraceFile

_MODULES = (
    "device_json", "kineto", "execution_trace", "rocprofiler", "memory_timeline", "speedscope", "cpuprofile",
    "xla_trace", "chrome", "memory_snapshot", "pprof", "xplane", "perfetto", "sqlite_trace", "rocprof_csv",
    "monitor_lines",
)  # fmt: skip
"""In the order in which they are asked: producers with marks of their own before the general format."""
IMPORTERS = Door(
    "neuron_tools.importers",
    "importer",
    tuple((name, f"neuron_tools.profile.importers.{name}") for name in _MODULES),
)
"""Each a `TraceFormat`: a module with its three names, or an object with them."""


class TraceFormat(Protocol):
    """What each format's module has."""

    NAME: str

    def recognise(self, head: Head) -> bool:
        """Whether a file's beginning is of this format."""
        ...

    def read(self, file: TraceFile, recording: Recording) -> None:
        """Stages a whole file.

        Raises:
            TraceError: Nothing of it can be used.
        """
        ...


def formats() -> tuple[TraceFormat, ...]:
    """All formats of single files, in the order in which they are asked: other packages' before ours."""
    ours = frozenset(_MODULES)
    found = [(name in ours, cast(TraceFormat, importer)) for name, importer in IMPORTERS.load_all()]
    return tuple(importer for _, importer in sorted(found, key=lambda pair: pair[0]))


def recognise(file: TraceFile) -> TraceFormat:
    """The format of a file.

    Raises:
        TraceError: It is empty or of no known format.
    """
    if not file.head.strip():
        raise TraceError(f"{file.path} is empty: there is nothing to import.")
    head = Head.of(file)
    for candidate in formats():
        if candidate.recognise(head):
            return candidate
    raise TraceError(refusal(file) or f"{file.path} is in no known format. {_known()}")


def _known() -> str:
    names = ", ".join(one.NAME for one in formats())
    return f"Known are: {names}, and folders of Neuron Explorer's Parquet tables."
