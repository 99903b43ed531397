"""The time a program takes when its executions have other durations: host and device played again.

The host does between two of its events what it did; a wait ends when the device is done. The device runs in
order, one execution after the other on each core. Of a range of time, what the host had launched before it
stands in the device's queue when it begins, and calls that reach over its ends are cut there.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.whatif.executions import Executions
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

WAITS = ("nrt_synchronize", "nrt_tensor_read")
WRITE = "nrt_tensor_write"
"""A copy to the device comes behind what the device has to do; some let the host go on meanwhile."""

_HOST = """
SELECT coalesce(event.process_idx, 0) AS process, coalesce(event.nc_idx, 0) AS core, event.name AS name,
    event.start_ts AS start_ns, event.end_ts AS end_ns, event.flow_id[1] AS flow,
    coalesce(any_value(span.source_file), '') AS file, coalesce(any_value(span.source_line), 0) AS line
FROM SystemProfileEvents event
LEFT JOIN HostSpan span ON event.name != 'nrt_execute' AND span.kind IN ('synchronize', 'copy')
    AND span.start_ts = event.start_ts AND span.end_ts = event.end_ts
    AND coalesce(span.process_idx, 0) = coalesce(event.process_idx, 0)
WHERE event.name IN ('nrt_execute', 'nrt_synchronize', 'nrt_tensor_read', 'nrt_tensor_write')
GROUP BY ALL ORDER BY process, start_ns, end_ns
"""
_DEVICE = """
SELECT coalesce(process_idx, 0) AS process, coalesce(nc_idx, 0) AS core, start_ts AS start_ns,
    flow_id[1] AS flow
FROM SystemProfileEvents WHERE name = 'nc_exec_running'
"""


Spans = npt.NDArray[np.int64]


@frozen
class Waits:
    """Waits at one source line, which the host leaves out: it reads all values together at the end.

    Attributes:
        file, line: Where the host waits.
        afterwards: Operations that are launched at the end, before the one read that remains.
        operation_ns: Device time of such an operation.
        host_ns: Host time of launching one.
    """

    file: str
    line: int
    afterwards: int = 0
    operation_ns: int = 0
    host_ns: int = 0


@frozen
class HostEvent:
    """One runtime call of the host.

    Attributes:
        execution: Position of the execution that it starts; -1 = it waits.
        core: Core that it waits for.
        place: File and line that waits to read; ("", 0) of a copy to the device.
        is_write: Whether it is a copy to the device.
    """

    process: int
    start_ns: int
    end_ns: int
    execution: int
    core: int
    place: tuple[str, int] = ("", 0)
    is_write: bool = False


class Replay:
    """Plays a profile's host events again."""

    def __init__(self, profile: Profile, executions: Executions) -> None:
        self._executions = executions
        self._durations = executions.end_ns - executions.start_ns
        self._events = _events(profile, executions)
        self._launch_ns = round(executions.core.launch_overhead_ns)
        self._start_ns = profile.range_ns[0] if profile.range_ns is not None else 0
        self._queued = _queued(executions, self._events) if profile.range_ns is not None else {}

    def total_ns(
        self,
        durations_ns: Ints,
        without: Waits | None = None,
        removed: Spans | None = None,
    ) -> int:
        """Time from the range's start until all is done, when the executions take `durations_ns`.

        Args:
            durations_ns: (executions,) device times.
            without: Waits that the host leaves out, and what it does instead.
            removed: (spans, 3) process, start and end of what the host would not do; what it launched there
                does not run.
        """
        ends = [
            self._play(process, durations_ns, without, _of_process(removed, process))
            for process in self._events.keys() | self._queued.keys()
        ]
        return max(ends) - self._start_ns if ends else int(durations_ns.sum())

    def recorded_ns(self) -> int:
        """The same with the recorded durations: what others are compared with."""
        return self.total_ns(self._durations)

    def launching_spans(self, spans: Spans) -> Ints:
        """(executions,) position of the span in which the host launched each; -1 = in none."""
        found = np.full(len(self._durations), -1, np.int64)
        for process, events in self._events.items():
            own = np.flatnonzero(spans[:, 0] == process)
            own = own[np.argsort(spans[own, 1], kind="stable")]
            for event in events:
                place = int(np.searchsorted(spans[own, 1], event.start_ns, "right")) - 1
                if event.execution >= 0 and place >= 0 and event.end_ns <= spans[own[place], 2]:
                    found[event.execution] = own[place]
        return found

    def _play(
        self,
        process: int,
        durations_ns: Ints,
        without: Waits | None,
        removed: Spans,
    ) -> int:
        """One process: returns when it and its devices are done."""
        events = self._events.get(process, [])
        before_ns = events[0].start_ns if events else 0
        now_ns = before_ns
        free_ns: defaultdict[int, int] = defaultdict(int)
        recorded_free_ns: defaultdict[int, int] = defaultdict(int)
        recorded, left_out = self._executions, -1
        if len(removed):
            now_ns -= _removed_between(removed, self._start_ns, before_ns)
        for execution in self._queued.get(process, ()):
            core = int(recorded.core_index[execution])
            free_ns[core] = self._queued_end_ns(execution, free_ns[core], durations_ns)
            recorded_free_ns[core] = int(recorded.end_ns[execution])
        for event in events:
            now_ns += max(0, event.start_ns - before_ns)
            if len(removed):
                now_ns -= _removed_between(removed, before_ns, event.start_ns)
            gone = bool(len(removed)) and _is_in(event, removed)
            if event.execution >= 0:
                recorded_free_ns[event.core] = int(recorded.end_ns[event.execution])
                if not gone:
                    now_ns += event.end_ns - event.start_ns
                    start_ns = max(now_ns, free_ns[event.core]) + self._launch_ns
                    free_ns[event.core] = start_ns + int(durations_ns[event.execution])
            elif not gone:
                waited_ns = max(0, min(event.end_ns, recorded_free_ns[event.core]) - event.start_ns)
                own_ns = event.end_ns - event.start_ns - waited_ns
                if event.is_write and event.end_ns < recorded_free_ns[event.core]:
                    now_ns += event.end_ns - event.start_ns  # it did not block
                elif event.is_write or without is None or event.place != (without.file, without.line):
                    now_ns = max(now_ns, free_ns[event.core]) + own_ns
                else:
                    left_out = max(left_out, own_ns)
            before_ns = event.end_ns
        if without is not None and left_out >= 0:
            now_ns += without.afterwards * without.host_ns
            joined_ns = without.afterwards * (self._launch_ns + without.operation_ns)
            now_ns = max(now_ns, free_ns[events[-1].core] + joined_ns) + left_out
        return max([now_ns, *free_ns.values()])

    def _queued_end_ns(self, execution: int, free_ns: int, durations_ns: Ints) -> int:
        """When an execution that was launched before the range is done; of a running one, the rest."""
        start_ns, duration_ns = int(self._executions.start_ns[execution]), int(durations_ns[execution])
        if start_ns >= self._start_ns:
            return max(self._start_ns, free_ns) + self._launch_ns + duration_ns
        recorded_ns = int(self._durations[execution])
        rest = (start_ns + recorded_ns - self._start_ns) / recorded_ns if recorded_ns else 0.0
        return max(self._start_ns, free_ns) + max(0, round(duration_ns * rest))


def _queued(executions: Executions, events: dict[int, list[HostEvent]]) -> dict[int, list[int]]:
    """Executions by process that no event launches, in the order in which they ran."""
    launched = {event.execution for found in events.values() for event in found}
    queued: dict[int, list[int]] = defaultdict(list)
    for execution in np.argsort(executions.start_ns, kind="stable"):
        if int(execution) not in launched:
            queued[int(executions.process[execution])].append(int(execution))
    return queued


def _of_process(removed: Spans | None, process: int) -> Spans:
    if removed is None:
        return np.zeros((0, 2), np.int64)
    return removed[removed[:, 0] == process, 1:]


def _removed_between(removed: Spans, start_ns: int, end_ns: int) -> int:
    """Time that the spans take within a range."""
    covered = np.minimum(removed[:, 1], end_ns) - np.maximum(removed[:, 0], start_ns)
    return int(np.maximum(covered, 0).sum())


def _is_in(event: HostEvent, removed: Spans) -> bool:
    """Whether an event happens within one of the spans."""
    return bool(np.any((removed[:, 0] <= event.start_ns) & (event.end_ns <= removed[:, 1])))


def _events(profile: Profile, executions: Executions) -> dict[int, list[HostEvent]]:
    """Host events by process, each tied to its execution through the flow it shares with the device's row."""
    position = {
        (int(process), int(core), int(start)): index
        for index, (process, core, start) in enumerate(
            zip(executions.process, executions.core_index, executions.start_ns)
        )
    }
    by_flow: dict[tuple[int, str], int] = {}
    for row in profile.query(_DEVICE).to_pylist():
        index = position.get((row["process"], row["core"], row["start_ns"]))
        if index is not None:
            by_flow[row["process"], row["flow"]] = index
    events: dict[int, list[HostEvent]] = defaultdict(list)
    for row in profile.query(_HOST).to_pylist():
        event = _event(_within(row, profile.range_ns), by_flow)
        if event is not None:
            events[event.process].append(event)
    return events


def _within(row: dict[str, Any], range_ns: tuple[int, int] | None) -> dict[str, Any]:
    """A host event cut to the range; the order of starts stays."""
    if range_ns is None:
        return row
    start_ns = min(max(row["start_ns"], range_ns[0]), range_ns[1])
    return {**row, "start_ns": start_ns, "end_ns": max(start_ns, min(row["end_ns"], range_ns[1]))}


def _event(row: dict[str, Any], by_flow: dict[tuple[int, str], int]) -> HostEvent | None:
    execution, is_write = -1, row["name"] == WRITE
    if row["name"] not in WAITS and not is_write:
        execution = by_flow.get((row["process"], row["flow"]), -1)
        if execution < 0:
            return None
    place = ("", 0) if is_write else (row["file"], row["line"])
    return HostEvent(row["process"], row["start_ns"], row["end_ns"], execution, row["core"], place, is_write)
