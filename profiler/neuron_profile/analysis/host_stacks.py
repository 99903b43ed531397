"""What the host's threads and loading processes did, as trees of calls: the host's flame graph.

Each sample counts with the time that it stands for, once in all and once with the part of it in which the
device of its process had nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np
import pyarrow as pa

from neuron_profile.analysis.host_activity import idle_spans, pauses_of_single_samples
from neuron_profile.analysis.own_lines import load_own_lines
from neuron_profile.analysis.source_frames import load_frames, stack
from neuron_profile.analysis.spans import covered_before
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

WAITING = ("lock", "sleep")
_SAMPLES = """
SELECT coalesce(process_idx, 0) AS process, coalesce(worker_idx, 0) AS worker,
    coalesce(thread_idx, 0) AS thread, coalesce(stack_frame_ids, '') AS stack, kind,
    start_ts AS start_ns, end_ts AS end_ns, coalesce(is_leading, false) AS is_leading
FROM HostSample ORDER BY start_ts
"""
_KEYS = ("process", "worker", "thread", "stack", "kind")


@dataclass(slots=True)
class HostCall:
    """A function on the stacks, called from the one above it, with all that it calls.

    Attributes:
        file, line: The function's file, and the line that it was at; of a thread "" and 0.
        idle_ns: The part of the time in which the device had nothing to do.
        kinds: Time by what the thread was doing, as `HostSample` has it.
    """

    name: str
    file: str = ""
    line: int = 0
    time_ns: int = 0
    idle_ns: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    children: dict[tuple[str, str, int], HostCall] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """What most of its time went to."""
        return max(self.kinds, key=lambda kind: (self.kinds[kind], kind), default="")

    def add(self, kind: str, time_ns: int, idle_ns: int) -> None:
        """Add a sample."""
        self.time_ns += time_ns
        self.idle_ns += idle_ns
        self.kinds[kind] = self.kinds.get(kind, 0) + time_ns

    def child(self, name: str, file: str = "", line: int = 0) -> HostCall:
        """The function that it calls, made where there is none yet."""
        return self.children.setdefault((name, file, line), HostCall(name, file, line))


def host_calls(profile: Profile) -> HostCall | None:
    """The calls of all threads below one root, threads first; None where the host was not sampled.

    The waiting of threads beside a process's main one is left out. Of a chosen range, only what lies in it
    counts.
    """
    samples = profile.query(_SAMPLES)
    if not samples.num_rows:
        return None
    frames, root = load_frames(profile), HostCall("all threads")
    groups = list(_groups(profile, samples))
    several = len({key[0] for key, _, _ in groups}) > 1
    for key, time_ns, idle_ns in _awake(groups):
        process, worker, thread, leaf, kind = key
        calls = [root, root.child(_thread_name(process if several else None, worker, thread))]
        for frame in reversed(stack(frames, leaf)):
            calls.append(calls[-1].child(frame.function or frame.file, frame.file, frame.line))
        for call in calls:
            call.add(kind, time_ns, idle_ns)
    return root if root.time_ns else None


_Key = tuple[int, int, int, str, str]
_Group = tuple[_Key, int, int]


def _groups(profile: Profile, samples: pa.Table) -> Iterator[_Group]:
    """Time, and idle time, by process, worker, thread, stack and kind."""
    starts, ends = (samples[name].to_numpy().astype(np.int64) for name in ("start_ns", "end_ns"))
    if profile.range_ns is not None:
        starts, ends = np.clip(starts, *profile.range_ns), np.clip(ends, *profile.range_ns)
    window = int(starts.min()), int(ends.max())
    idle, own = np.zeros(len(starts), np.int64), load_own_lines(profile)
    processes = samples["process"].to_numpy()
    for process in np.unique(processes).tolist():
        here = processes == process
        spans = idle_spans(profile, process, window)
        pauses = pauses_of_single_samples(profile, process, own)
        explained = np.maximum(starts[here], _pause_starts(samples.filter(pa.array(here)), pauses))
        idle[here] = covered_before(spans, ends[here]) - covered_before(
            spans, np.minimum(explained, ends[here])
        )
    timed = samples.select(_KEYS).append_column("time", pa.array(ends - starts))
    timed = timed.append_column("idle", pa.array(idle))
    for row in timed.group_by(list(_KEYS)).aggregate([("time", "sum"), ("idle", "sum")]).to_pylist():
        key = (row["process"], row["worker"], row["thread"], row["stack"], row["kind"])
        yield key, row["time_sum"], row["idle_sum"]


def _pause_starts(samples: pa.Table, pauses: Mapping[tuple[int, int], int]) -> Ints:
    """(samples,) when the only pause began that a leading sample explains; 0 where it may explain others."""
    times = zip(*(samples[name].to_pylist() for name in ("is_leading", "start_ns", "end_ns")))
    return np.array([pauses.get((start, end), 0) if leads else 0 for leads, start, end in times], np.int64)


def _awake(groups: Sequence[_Group]) -> list[_Group]:
    """Without the waiting of threads beside the main one, which is what pools do; most time first."""
    kept = [group for group in groups if group[1] and (not group[0][2] or group[0][4] not in WAITING)]
    return sorted(kept, key=lambda group: (-group[1], group[0]))


def _thread_name(process: int | None, worker: int, thread: int) -> str:
    of_process = "" if process is None else f"process {process}, "
    of_worker = f"worker {worker}" if worker else ""
    of_thread = "main thread" if not thread else f"thread {thread}"
    if worker:
        return of_process + (of_worker if not thread else f"{of_worker}, {of_thread}")
    return of_process + of_thread


@frozen
class CallRow:
    """A call of the tree as a row.

    Attributes:
        parent: Position of the caller's row; -1 of the root.
    """

    call: HostCall
    parent: int


def call_rows(root: HostCall, most: int, *, while_idle: bool = False) -> list[CallRow]:
    """The root and the calls with most time, each behind its caller, at most so many."""

    def time_of(call: HostCall) -> int:
        return call.idle_ns if while_idle else call.time_ns

    rows = [CallRow(root, -1)]
    waiting = [(-time_of(root), 0)]  # the call with most time is opened first: what is cut off has least
    while waiting and len(rows) < most:
        _, place = heappop(waiting)
        for child in sorted(rows[place].call.children.values(), key=lambda each: -time_of(each)):
            if time_of(child) and len(rows) < most:
                heappush(waiting, (-time_of(child), len(rows)))
                rows.append(CallRow(child, place))
    return rows
