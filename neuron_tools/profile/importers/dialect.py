"""What producers of Chrome traces add to the format: a set of hooks, which do nothing by default."""

from __future__ import annotations

from typing import Any, Protocol

from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.json_rows import JsonRows
from neuron_tools.profile.importers.recording import Recording


class CounterTracks(Protocol):
    """The tracks of a file, as far as a dialect adds to them."""

    def counter_lane(self, pid: str, name: str, series: str) -> int:
        """Track of a counter that a dialect makes; `pid` as the file spells it."""


class Dialect:
    """The format as its document says it; producers' dialects override what differs."""

    def add_header(self, key: str, value: Any) -> None:
        """Takes a top-level member of the document other than the events."""

    argument_keys: tuple[str, ...] = ()
    """Members of `args` that the dialect looks at."""

    def columns(self, rows: JsonRows, arguments: JsonRows) -> dict[str, Any]:
        """Further columns of TraceSpan for some events and their `argument_keys`."""
        return {}

    def add_instants(
        self,
        rows: JsonRows,
        arguments: JsonRows,
        time_ns: Ints,
        layout: CounterTracks,
        recording: Recording,
    ) -> None:
        """Sees complete and instant events, to make samples of them."""

    def device_of(self, pid: str, name: str | None, labels: str | None) -> int | None:
        """The device that a process of the trace stands for; None for one of the operating system."""
        return None

    def device_of_thread(self, pid: str, tid: str) -> int | None:
        """The device that a thread of a process of the host is a stream of; None if of none."""
        return None

    def is_host_thread(self, pid: str, tid: str) -> bool:
        """Whether a thread of a process that stands for a device belongs to the host all the same."""
        return False

    def launches(self, pid: str) -> bool:
        """Whether a process of the host calls the runtime of a device."""
        return False

    def is_annotation(self, pid: str) -> bool:
        """Whether a process of the trace stands for no process at all, but for marks of the profiler."""
        return False

    def finish(self, recording: Recording) -> None:
        """Fills what the headers told: clock, rank, host."""
