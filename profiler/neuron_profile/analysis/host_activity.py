"""What the host was doing while the device had nothing to do: idle time by kind and by the user's line.

The device of a process is idle between its first execution and its last where none runs. Where there are
several training steps, the first warms up and does not count. A copy between host and device and a collective
are what they are; the rest of the idle time belongs to what the leading thread's samples say. A sample stands
for the time since the one before; what was seen just once in the whole profile, such as an import on the way
out, explains no pause of the device but the one in which it was seen.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from neuron_profile.analysis.own_lines import OwnLine, load_own_lines
from neuron_profile.analysis.source_frames import SourceLine
from neuron_profile.analysis.spans import Union, covered_before, length_ns, process_union, union
from neuron_profile.analysis.time.core_spans import EARLIEST, EXECUTION_EVENT, LATEST
from neuron_profile.analysis.time.stretches import cut_times
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_WITHIN = re.compile(r"(\.<locals>)?\.<(genexpr|listcomp|dictcomp|setcomp|lambda)>$|^<\w+comp>$")
"""Functions that Python makes of a part of another."""
WAITING_FOR_WORKERS = "waiting for its workers"

_PROCESSES = "SELECT DISTINCT coalesce(process_idx, 0) AS process FROM HostSample ORDER BY 1"
MOST_EXECUTIONS = 1 << 18
"""Of a process that are looked at together: memory does not grow with a capture's length."""
_EXECUTIONS = f"FROM SystemProfileEvents WHERE name = '{EXECUTION_EVENT}' AND coalesce(process_idx, 0) = ?"
_BUSY = f"SELECT start_ts AS start_ns, end_ts AS end_ns {_EXECUTIONS} ORDER BY start_ts"
_STARTS = f"SELECT start_ts {_EXECUTIONS}"
_EXTENT = f"SELECT min(start_ts) AS first, max(end_ts) AS last {_EXECUTIONS}"
_WARM_UP = """
SELECT min(end_ts) AS until_ns FROM HostSpan
WHERE coalesce(process_idx, 0) = ? AND (kind = 'step' OR (kind = 'optimizer' AND name LIKE '%.step'))
HAVING count(*) > 1
"""
_CALLS = """
SELECT start_ts AS start_ns, end_ts AS end_ns, kind, kind AS detail, coalesce(source_file, '') AS file,
    coalesce(source_line, 0) AS line, coalesce(stack_frame_ids, '') AS stack
FROM HostSpan
WHERE coalesce(process_idx, 0) = ? AND kind IN ('copy', 'collective') AND end_ts > start_ts
ORDER BY start_ts
"""
_SAMPLES = """
SELECT start_ts AS start_ns, end_ts AS end_ns, kind, coalesce(detail, '') AS detail,
    coalesce(source_file, '') AS file, coalesce(source_line, 0) AS line,
    coalesce(stack_frame_ids, '') AS stack
FROM HostSample WHERE coalesce(process_idx, 0) = ? AND {condition} ORDER BY start_ts
"""
_LEADING = _SAMPLES.format(condition="is_leading")
_LOADING_WORKERS = _SAMPLES.format(condition="worker_idx > 0 AND thread_idx = 0 AND kind = 'data_loading'")
_WORKERS = "SELECT count(DISTINCT worker_idx) AS n FROM HostSample WHERE worker_idx > 0 AND process_idx = ?"


@frozen
class HostActivity:
    """Idle time of the device that one line of the host is behind.

    Attributes:
        kind: As `HostSample` has it; "collective" in a collective of torch.distributed.
        detail: What exactly; "" where the kind says it.
        file, line, function: The user's own line.
        inside: File and line where the thread was, most of the time; "" where that is the user's line.
        workers_at: The line that the processes that load data spent most of that time at; "" without them.
        idle_ns: Time in which the device had nothing to do.
    """

    kind: str
    detail: str
    file: str
    line: int
    function: str
    inside: str
    workers_at: str
    idle_ns: int

    @property
    def place(self) -> SourceLine:
        """The user's own line."""
        return SourceLine(self.file, self.line)


@frozen
class HostIdle:
    """Why the device was idle, on average over the processes.

    Attributes:
        window_ns: The time that was looked at.
        idle_ns: The part in which nothing ran on the device.
        sampled_ns: The part of that of which a sample tells something.
        activities: By idle time, most first.
    """

    window_ns: int
    idle_ns: int
    sampled_ns: int
    activities: tuple[HostActivity, ...]

    def of(self, kinds: Sequence[str]) -> tuple[HostActivity, ...]:
        """Those of some kinds."""
        return tuple(activity for activity in self.activities if activity.kind in kinds)


@dataclass(slots=True)
class _Charge:
    """What is charged to one kind and line."""

    idle_ns: int = 0
    details: defaultdict[str, int] = field(default_factory=partial(defaultdict, int))
    lines: defaultdict[SourceLine, int] = field(default_factory=partial(defaultdict, int))
    library: defaultdict[SourceLine, int] = field(default_factory=partial(defaultdict, int))
    workers: defaultdict[SourceLine, int] = field(default_factory=partial(defaultdict, int))

    def activity(self, kind: str, function: str, processes: int) -> HostActivity:
        place, library = _most(self.lines), _most(self.library)
        is_elsewhere = library != place and library.line
        inside = f"{library.file}:{library.line}" if is_elsewhere else ""
        worker = _most(self.workers) if self.workers else None
        workers_at = "" if worker is None else f"{worker.file}:{worker.line}"
        idle_ns = self.idle_ns // processes
        detail = _most(self.details)
        return HostActivity(kind, detail, place.file, place.line, function, inside, workers_at, idle_ns)


_Cause = tuple[str, str, str, int]
"""Kind, file, function and, where the lines of a function are several causes, line."""
_Charges = defaultdict[_Cause, _Charge]


def find_host_idle(profile: Profile) -> HostIdle | None:
    """Idle time by what the host did; None where the host was not sampled."""
    whole = profile.whole
    processes = whole.kept("sampled processes", lambda: whole.query(_PROCESSES)[0].to_pylist())
    if not processes:
        return None
    own = load_own_lines(profile)
    charges: _Charges = defaultdict(_Charge)
    totals = np.zeros(3, np.int64)
    for process in processes:
        totals += _Process(profile, process, own).charge(charges)
    found = [
        charge.activity(kind, function, len(processes))
        for (kind, _, function, _), charge in charges.items()
        if charge.idle_ns
    ]
    found.sort(key=lambda activity: (-activity.idle_ns, activity.kind, activity.file, activity.line))
    window_ns, idle_ns, sampled_ns = (int(total) // len(processes) for total in totals)
    return HostIdle(window_ns, idle_ns, sampled_ns, tuple(found))


def pauses_of_single_samples(
    profile: Profile, process: int, own: dict[str, OwnLine]
) -> dict[tuple[int, int], int]:
    """When the device last became idle before each leading sample that is the only one of its cause.

    Returns:
        By start and end of the sample, in ns.
    """
    return profile.whole.kept(
        ("single samples", process), lambda: _Process(profile, process, own).single_pauses()
    )


def idle_spans(profile: Profile, process: int, window: tuple[int, int]) -> Union:
    """When nothing runs on the device of a process, within a window of time in ns."""
    return _gaps_in(window, process_union(profile, _BUSY, process))


class _Process:
    """Charges the idle time of one process."""

    def __init__(self, profile: Profile, process: int, own: dict[str, OwnLine]) -> None:
        self._profile, self._process, self._own = profile, process, own

    def charge(self, charges: _Charges) -> Ints:
        """Add what is found; time looked at, idle time, and the sampled part of it."""
        window = self._window()
        totals = np.zeros(3, np.int64)
        if window is None or window[0] >= window[1]:
            return totals
        samples = self._samples()
        times = _times(samples)
        edges = [time for time in self._cuts(self._profile) if window[0] < time < window[1]]
        for begin, end in pairwise([window[0], *edges, window[1]]):
            near = np.flatnonzero((times[0] < end) & (times[1] > begin)).tolist()
            totals += self._charge_part(charges, (begin, end), [samples[place] for place in near])
        return totals

    def _charge_part(self, charges: _Charges, window: tuple[int, int], samples: list[dict[str, Any]]) -> Ints:
        profile = self._profile.slice(*window)
        idle = idle_spans(profile, self._process, window)
        calls = self._rows(profile, _CALLS)
        for rows, spans in ((calls, idle), (samples, _without(idle, calls))):
            for row, idle_ns in _idle_of(rows, spans):
                self._add(charges, row, idle_ns)
        self._add_workers(charges, profile, samples, idle)
        sampled = _overlap(idle, union(*_times(samples)))
        return np.array([window[1] - window[0], length_ns(idle), sampled], np.int64)

    def _cuts(self, profile: Profile) -> list[int]:
        """Times that divide the executions into few enough."""
        return cut_times(profile, _STARTS, [self._process], MOST_EXECUTIONS)

    def _window(self) -> tuple[int, int] | None:
        if self._profile.range_ns is not None:
            return self._profile.range_ns
        busy = self._profile.query(_EXTENT, [self._process]).to_pylist()[0]
        if busy["first"] is None:
            return None
        warm = self._profile.query(_WARM_UP, [self._process]).to_pylist()
        first = busy["first"] if not warm else int(warm[0]["until_ns"])
        return (first, busy["last"]) if first < busy["last"] else (busy["first"], busy["last"])

    def _rows(self, profile: Profile, query: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = profile.query(query, [self._process]).to_pylist()
        return rows

    def _samples(self) -> list[dict[str, Any]]:
        """Of the leading thread; the only one of a cause begins with the pause in which it was taken."""
        return self._profile.whole.kept(("leading samples", self._process), self._read_samples)

    def _read_samples(self) -> list[dict[str, Any]]:
        samples = self._rows(self._profile.whole, _LEADING)
        pauses = pauses_of_single_samples(self._profile, self._process, self._own)
        for row in samples:
            row["start_ns"] = max(row["start_ns"], pauses.get((row["start_ns"], row["end_ns"]), 0))
        return samples

    def single_pauses(self) -> dict[tuple[int, int], int]:
        """As `pauses_of_single_samples`."""
        samples = self._rows(self._profile.whole, _LEADING)
        seen = Counter(map(self._cause, samples))
        only = [row for row in samples if seen[self._cause(row)] == 1]
        idle_from = self._idle_from(_times(only)[1]).tolist()
        return {(row["start_ns"], row["end_ns"]): at for row, at in zip(only, idle_from, strict=True)}

    def _idle_from(self, times: Ints) -> Ints:
        """When the device last became idle until each time; 0 where nothing had run."""
        whole, last = self._profile.whole, 0
        found = np.zeros(len(times), np.int64)
        for begin, end in pairwise([EARLIEST, *self._cuts(whole), LATEST]):
            _, ends = process_union(whole.slice(begin, end + 1), _BUSY, self._process)
            ends = np.concatenate([[last], ends[ends <= end]])
            here = (times >= begin) & (times < end)
            found[here] = ends[np.searchsorted(ends[1:], times[here], side="right")]
            last = int(ends[-1])
        return found

    def _own_line(self, row: dict[str, Any]) -> OwnLine:
        return self._own.get(row["stack"]) or OwnLine(SourceLine(row["file"], row["line"]), "", False)

    def _cause(self, row: dict[str, Any]) -> _Cause:
        own = self._own_line(row)
        # A batch is loaded by several lines of one function: they are one cause.
        line = 0 if row["kind"] == "data_loading" else own.place.line
        return row["kind"], own.place.file, _WITHIN.sub("", own.function), line

    def _add(self, charges: _Charges, row: dict[str, Any], idle_ns: int) -> None:
        place = self._own_line(row).place
        charge = charges[self._cause(row)]
        charge.idle_ns += idle_ns
        charge.details[row["detail"]] += idle_ns
        charge.lines[place] += idle_ns
        charge.library[SourceLine(row["file"], row["line"])] += idle_ns

    def _add_workers(
        self,
        charges: _Charges,
        profile: Profile,
        samples: list[dict[str, Any]],
        idle: Union,
    ) -> None:
        """Say where the loading processes were while the main one waited for them."""
        waiting = list(filter(_waits_for_workers, samples))
        workers = self._rows(profile, _LOADING_WORKERS)
        if not waiting or not workers:
            return
        count = max(1, self._profile.query(_WORKERS, [self._process]).to_pylist()[0]["n"])
        own = self._own.get(next(filter(_waits_for_workers, self._samples()))["stack"])
        if own is None:
            return
        charge = charges["data_loading", own.place.file, _WITHIN.sub("", own.function), 0]
        waits = _intersection(union(*_times(waiting)), idle)
        for row, time_ns in _idle_of(workers, waits):
            place = self._own.get(row["stack"])
            # A worker whose own frames are the caller's waits for something to do.
            if place is not None and place.place != own.place:
                charge.workers[place.place] += time_ns // count


def _waits_for_workers(row: dict[str, Any]) -> bool:
    return (row["kind"], row["detail"]) == ("data_loading", WAITING_FOR_WORKERS)


def _most(times: dict[Any, int]) -> Any:
    return max(times, key=lambda key: (times[key], str(key)))


def _times(rows: Sequence[dict[str, Any]]) -> tuple[Ints, Ints]:
    start, end = (np.array([row[name] for row in rows], np.int64) for name in ("start_ns", "end_ns"))
    return start, end


def _idle_of(rows: Sequence[dict[str, Any]], idle: Union) -> Iterator[tuple[dict[str, Any], int]]:
    """Rows with the idle time that lies in each, where there is some."""
    starts, ends = _times(rows)
    times = covered_before(idle, ends) - covered_before(idle, starts)
    for place in np.flatnonzero(times > 0).tolist():
        yield rows[place], int(times[place])


def _gaps_in(window: tuple[int, int], busy: Union) -> Union:
    """What of a window the busy spans leave."""
    edges = np.clip(np.stack(busy), *window)
    starts, ends = np.concatenate([[window[0]], edges[1]]), np.concatenate([edges[0], [window[1]]])
    some = ends > starts
    return starts[some], ends[some]


def _without(idle: Union, calls: Sequence[dict[str, Any]]) -> Union:
    if not len(idle[0]) or not calls:
        return idle
    window = int(idle[0][0]), int(idle[1][-1])
    return _intersection(idle, _gaps_in(window, union(*_times(calls))))


def _intersection(one: Union, other: Union) -> Union:
    """The common part of two unions."""
    if not len(one[0]) or not len(other[0]):
        nothing = np.zeros(0, np.int64)
        return nothing, nothing
    edges = np.unique(np.concatenate([*one, *other]))
    starts, ends = edges[:-1], edges[1:]
    inside = np.ones(len(starts), bool)
    for spans in (one, other):
        index = np.searchsorted(spans[0], starts, side="right") - 1
        inside &= (index >= 0) & (ends <= spans[1][np.maximum(index, 0)])
    return union(starts[inside], ends[inside])


def _overlap(one: Union, other: Union) -> int:
    return length_ns(_intersection(one, other))
