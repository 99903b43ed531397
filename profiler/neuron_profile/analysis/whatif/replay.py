"""The time a program takes when its executions have other durations: host and device played again.

The host does between two of its events what it did; a wait ends when the device is done. The device runs in
order, one execution after the other on each core.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.whatif.executions import Executions
from neuron_tools.profile.reader import Profile

Ints = npt.NDArray[np.int64]
WAITS = ("nrt_synchronize", "nrt_tensor_read")

_HOST = """
SELECT coalesce(event.process_idx, 0) AS process, coalesce(event.nc_idx, 0) AS core, event.name AS name,
    event.start_ts AS start_ns, event.end_ts AS end_ns, event.flow_id[1] AS flow,
    coalesce(any_value(span.source_file), '') AS file, coalesce(any_value(span.source_line), 0) AS line
FROM SystemProfileEvents event
LEFT JOIN HostSpan span ON event.name != 'nrt_execute' AND span.kind IN ('synchronize', 'copy')
    AND span.start_ts = event.start_ts AND span.end_ts = event.end_ts
    AND coalesce(span.process_idx, 0) = coalesce(event.process_idx, 0)
WHERE event.name IN ('nrt_execute', 'nrt_synchronize', 'nrt_tensor_read')
GROUP BY ALL ORDER BY process, start_ns, end_ns
"""
_DEVICE = """
SELECT coalesce(process_idx, 0) AS process, coalesce(nc_idx, 0) AS core, start_ts AS start_ns,
    flow_id[1] AS flow
FROM SystemProfileEvents WHERE name = 'nc_exec_running'
"""


@dataclass(frozen=True, slots=True)
class HostEvent:
    """One runtime call of the host.

    Attributes:
        execution: Position of the execution that it starts; -1 = it waits.
        core: Core that it waits for.
        place: File and line that waits.
    """

    process: int
    start_ns: int
    end_ns: int
    execution: int
    core: int
    place: tuple[str, int] = ("", 0)


class Replay:
    """Plays a profile's host events again."""

    def __init__(self, profile: Profile, executions: Executions) -> None:
        self._executions = executions
        self._durations = executions.end_ns - executions.start_ns
        self._events = _events(profile, executions)
        self._launch_ns = round(executions.core.launch_overhead_ns)
        self._start_ns = profile.range_ns[0] if profile.range_ns is not None else 0

    def total_ns(
        self,
        durations_ns: Ints,
        without_waits_at: tuple[str, int] | None = None,
        launched_free: npt.NDArray[np.bool_] | None = None,
    ) -> int:
        """Time from the range's start until all is done, when the executions take `durations_ns`.

        Args:
            durations_ns: (executions,) device times.
            without_waits_at: File and line of waits that the host leaves out.
            launched_free: (executions,) those that cost no launch.
        """
        launch_ns = np.full(len(durations_ns), self._launch_ns, np.int64)
        if launched_free is not None:
            launch_ns[launched_free] = 0
        ends = [
            self._play(events, durations_ns, launch_ns, without_waits_at) for events in self._events.values()
        ]
        return max(ends) - self._start_ns if ends else int(durations_ns.sum())

    def recorded_ns(self) -> int:
        """The same with the recorded durations: what others are compared with."""
        return self.total_ns(self._durations)

    def _play(
        self,
        events: list[HostEvent],
        durations_ns: Ints,
        launch_ns: Ints,
        without_waits_at: tuple[str, int] | None,
    ) -> int:
        """One process: returns when it and its devices are done."""
        before_ns = events[0].start_ns if events else 0
        now_ns = before_ns
        free_ns: defaultdict[int, int] = defaultdict(int)
        recorded_free_ns: defaultdict[int, int] = defaultdict(int)
        recorded = self._executions
        for event in events:
            now_ns += max(0, event.start_ns - before_ns)
            if event.execution >= 0:
                now_ns += event.end_ns - event.start_ns
                start_ns = max(now_ns, free_ns[event.core]) + int(launch_ns[event.execution])
                free_ns[event.core] = start_ns + int(durations_ns[event.execution])
                recorded_free_ns[event.core] = int(recorded.end_ns[event.execution])
            else:
                waited_ns = max(0, min(event.end_ns, recorded_free_ns[event.core]) - event.start_ns)
                own_ns = event.end_ns - event.start_ns - waited_ns
                if without_waits_at is None or event.place != without_waits_at:
                    now_ns = max(now_ns, free_ns[event.core]) + own_ns
            before_ns = event.end_ns
        return max([now_ns, *free_ns.values()])


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
        event = _event(row, by_flow)
        if event is not None:
            events[event.process].append(event)
    return events


def _event(row: dict[str, Any], by_flow: dict[tuple[int, str], int]) -> HostEvent | None:
    execution = -1
    if row["name"] not in WAITS:
        execution = by_flow.get((row["process"], row["flow"]), -1)
        if execution < 0:
            return None
    return HostEvent(
        row["process"], row["start_ns"], row["end_ns"], execution, row["core"], (row["file"], row["line"])
    )
