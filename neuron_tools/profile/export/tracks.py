"""The tree of tracks: process -> NeuronCore -> engines, queues, framework; process -> host threads."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from neuron_tools.frozen import frozen
from neuron_tools.profile.export.source import Tables
from neuron_tools.profile.export.timeline import TimelineSink, Track, TrackKind

LARGEST_LINUX_PID = 1 << 22
MOST_THREADS = 1 << 16
LARGEST_THREAD_ID = 1 << 31
LARGEST_RANK = (1 << 31) - 1


class TrackTree:
    """Makes each track once, with its headings above it, and declares it to the sink."""

    def __init__(
        self,
        sink: TimelineSink,
        processes: Mapping[int, tuple[int, str]],
        traces: Mapping[tuple[int, int], TraceTrack] = MappingProxyType({}),
    ) -> None:
        self._sink = sink
        self._processes = processes
        self._traces = traces
        self._thread_ids: set[tuple[int, int]] = set()
        self._tracks: dict[tuple[object, ...], Track] = {}

    def __len__(self) -> int:
        return len(self._tracks)

    def process(self, process_idx: int) -> Track:
        """The track of a process."""
        process_id, name = self._processes.get(process_idx, (process_idx + 1, f"Process {process_idx}"))
        return self._track((process_idx,), name, TrackKind.PROCESS, None, process_idx, process_id)

    def core(self, process_idx: int, core_idx: int) -> Track:
        """The heading of a NeuronCore, under its process: what stands below it belongs to this device."""
        process = self.process(process_idx)
        return self._track(
            (process.uid, "core", core_idx),
            f"NeuronCore {core_idx}",
            TrackKind.CORE,
            process,
            core_idx,
            process.process_id,
            device_idx=core_idx,
        )

    def group(self, parent: Track, name: str, rank: int) -> Track:
        """A heading above tracks that are sorted by name."""
        return self._child(parent, ("group", name), name, TrackKind.GROUP, rank)

    def lane(self, parent: Track, name: str, lane: int, rank: int) -> Track:
        """One lane of a track of slices; all its lanes have the same name and rank."""
        return self._child(parent, ("lane", name, lane), name, TrackKind.SLICES, rank)

    def thread(self, process_idx: int, thread_idx: int) -> Track:
        """A host thread. The first one is the main thread and has the process's own number, as on Linux."""
        process = self.process(process_idx)
        thread_id = process.process_id
        if thread_idx:
            thread_id = LARGEST_LINUX_PID + process_idx * MOST_THREADS + thread_idx
        name = f"Thread {thread_idx}" if thread_idx else "Main thread"
        key = (process.uid, "thread", thread_idx)
        return self._track(
            key, name, TrackKind.THREAD, process, thread_idx, process.process_id, thread_id=thread_id
        )

    def counter(self, parent: Track, name: str, unit: str, rank: int) -> Track:
        """A counter under `parent`."""
        key = (parent.uid, "counter", name)
        return self._track(
            key,
            name,
            TrackKind.COUNTER,
            parent,
            rank,
            parent.process_id,
            unit=unit,
            device_idx=parent.device_idx,
        )

    def trace(self, process_idx: int, track_idx: int, lane: int) -> Track:
        """A track of an imported trace, under those that it stood under."""
        process = self.process(process_idx)
        known = self._traces.get((process_idx, track_idx), TraceTrack(f"track {track_idx}"))
        parent = process if known.parent is None else self.trace(process_idx, known.parent, 0)
        key: tuple[object, ...] = (process.uid, "trace", track_idx, lane)
        if lane and known.kind == "thread" and known.parent is None:
            name = f"{known.name} (overlapping)"
            return self._track(key, name, TrackKind.SLICES, process, known.rank, process.process_id)
        kind = self._trace_kind(known, process, key)
        thread_id = known.thread_id if kind is TrackKind.THREAD else 0
        return self._track(
            key,
            known.name,
            kind,
            parent,
            known.rank,
            process.process_id,
            thread_id=thread_id,
            unit=known.unit,
            device_idx=known.device_idx,
            stream=known.stream,
        )

    def _trace_kind(self, known: TraceTrack, process: Track, key: tuple[object, ...]) -> TrackKind:
        """A thread only once for each number: viewers take threads of one number for one."""
        if key in self._tracks:
            return self._tracks[key].kind
        if known.kind == "counter":
            return TrackKind.COUNTER
        own = (process.process_id, known.thread_id)
        if (
            known.kind != "thread"
            or known.parent is not None
            or own in self._thread_ids
            or known.thread_id <= 0
        ):
            return TrackKind.SLICES if known.has_rows else TrackKind.CORE
        self._thread_ids.add(own)
        return TrackKind.THREAD

    def _child(self, parent: Track, key: tuple[object, ...], name: str, kind: TrackKind, rank: int) -> Track:
        return self._track(
            (parent.uid, *key), name, kind, parent, rank, parent.process_id, device_idx=parent.device_idx
        )

    def _track(
        self,
        key: tuple[object, ...],
        name: str,
        kind: TrackKind,
        parent: Track | None,
        rank: int,
        process_id: int,
        *,
        thread_id: int = 0,
        unit: str = "",
        device_idx: int | None = None,
        stream: int | None = None,
    ) -> Track:
        if key not in self._tracks:
            uid = len(self._tracks) + 1
            self._tracks[key] = Track(
                uid, name, kind, parent, rank, process_id, thread_id, unit, device_idx, stream
            )
            self._sink.add_track(self._tracks[key])
        return self._tracks[key]


@frozen
class TraceTrack:
    """A row of the table TraceTrack, as far as it is drawn.

    Attributes:
        parent: Number of the track above it; None below the process.
        thread_id: Of the operating system; 0 = not known.
        rank: Place among its siblings.
        has_rows: Whether spans stand on it, not only tracks under it.
        device_idx: Device whose work it shows; None for the host.
        stream: Number of the device's stream; None if it is none.
    """

    name: str
    kind: str = "other"
    parent: int | None = None
    thread_id: int = 0
    rank: int = 0
    unit: str = ""
    has_rows: bool = True
    device_idx: int | None = None
    stream: int | None = None


def trace_tracks(tables: Tables) -> dict[tuple[int, int], TraceTrack]:
    """Tracks of imported traces by process and number; a chain of parents that turns in a circle is cut."""
    if not tables.count("TraceTrack"):
        return {}
    rows = tables.rows(
        "SELECT process_idx, track_idx, name, kind, parent_track_idx, coalesce(thread_id, 0),"
        " coalesce(sort_index, 0), coalesce(unit, ''), (process_idx, track_idx) IN"
        " (SELECT (process_idx, track_idx) FROM TraceSpan), device_idx,"
        " CASE WHEN kind = 'stream' THEN coalesce(thread_id, -1) END FROM TraceTrack ORDER BY 1, 2"
    )
    parents = {(row[0], row[1]): row[4] for row in rows}
    return {
        (process, number): TraceTrack(
            name,
            kind,
            None if _is_circle(parents, process, number) else parent,
            thread_id if 0 < thread_id < LARGEST_THREAD_ID else 0,
            min(max(rank, -LARGEST_RANK), LARGEST_RANK),
            unit,
            bool(has_rows),
            device_idx,
            stream,
        )
        for process, number, name, kind, parent, thread_id, rank, unit, has_rows, device_idx, stream in rows
    }


def _is_circle(parents: Mapping[tuple[int, int], int | None], process: int, number: int) -> bool:
    seen = {number}
    above = parents[(process, number)]
    while above is not None:
        if above in seen or (process, above) not in parents:
            return True
        seen.add(above)
        above = parents[(process, above)]
    return False


def process_names(tables: Tables) -> dict[int, tuple[int, str]]:
    """process_idx -> (process number, name) from ProcessInfo; numbers that repeat are replaced.

    Processes of different machines may share a number, which a trace viewer would take for one process.
    """
    if not tables.has("ProcessInfo", "process_idx"):
        return {}
    number = next((c for c in ("process_id", "pid") if tables.has("ProcessInfo", c)), "process_idx + 1")
    known = [column for column in ("name", "command") if tables.has("ProcessInfo", column)]
    command = f"coalesce({', '.join([*known, 'NULL'])})"
    rank = "rank" if tables.has("ProcessInfo", "rank") else "NULL"
    rows = tables.rows(
        f"SELECT process_idx, {number}, CAST({command} AS VARCHAR), {rank} FROM ProcessInfo ORDER BY 1"
    )
    numbers = [row[1] for row in rows]
    unique = len(set(numbers)) == len(numbers) and all(n and 0 < n < LARGEST_LINUX_PID for n in numbers)
    return {
        index: (int(pid) if unique else index + 1, _process_title(index, text, rank_number))
        for index, pid, text, rank_number in rows
    }


def _process_title(process_idx: int, command: str | None, rank: int | None) -> str:
    title = command or f"Process {process_idx}"
    return title if rank is None or rank < 0 else f"rank {rank}: {title}"
