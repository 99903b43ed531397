"""Chrome trace-event JSON, as chrome://tracing, Perfetto and Speedscope read it.

The format knows two levels, process and thread, so a NeuronCore stands as a process of its own beside its
host process, and each engine, queue or lane is a thread of it. Times are exact decimal microseconds. The
metadata events carry the whole path of each track beside the joined name, for readers that know trees.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.arrays import Ints
from neuron_tools.profile.export.formats import ExportFormat
from neuron_tools.profile.export.json_text import (
    JsonList,
    joined,
    json_objects,
    json_values,
    merged_objects,
    microseconds,
)
from neuron_tools.profile.export.timeline import SliceEvents, Slices, Track, TrackKind
from neuron_tools.profile.export.timeline_file import timeline_exporter
from neuron_tools.profile.export.tracks import LARGEST_LINUX_PID

FIRST_GROUP_PID = 4 * LARGEST_LINUX_PID
CHUNK_ROWS = 1 << 16


@contextmanager
def _opened(stream: BinaryIO) -> Iterator[ChromeSink]:
    stream.write(b'{"displayTimeUnit": "ns", "traceEvents": [')
    yield ChromeSink(stream)
    stream.write(b"]}\n")


export_chrome = timeline_exporter(_opened)


class ChromeSink:
    """A timeline as trace events, one a line."""

    def __init__(self, stream: BinaryIO) -> None:
        self._events = JsonList(stream)

    def add_track(self, track: Track) -> None:
        """Names the process or thread that stands for a track."""
        pid, tid = _process_number(track), _thread_number(track)
        if track is _process_like(track):
            path = _names(track)
            about = {"name": " / ".join(path), "path": path, "process_id": track.process_id, **_device(track)}
            self._metadata("process_name", pid, tid, about)
            self._metadata("process_sort_index", pid, tid, {"sort_index": track.uid})
        elif track.kind in (TrackKind.THREAD, TrackKind.SLICES):
            own = _names(track)[len(_names(_process_like(track))) :]
            about = {"name": " / ".join(own), "path": own, "kind": track.kind.value, **_device(track)}
            self._metadata("thread_name", pid, tid, about)
            self._metadata("thread_sort_index", pid, tid, {"sort_index": _sort_index(track)})
        elif track.kind is TrackKind.COUNTER:
            own = _names(track)[len(_names(_process_like(track))) :]
            self._metadata(f"counter_unit {track.name}", pid, tid, {"unit": track.unit, "path": own})

    def add_slices(self, lanes: Sequence[Track], slices: Slices, events: SliceEvents) -> None:
        """Writes complete events ("X"), each followed by its flow events ("s" where one starts, "f" ends).

        A reader ties a flow event to the slice that is open on the thread at that time. The format leaves
        open which that is where a slice of no length is followed at once by another.
        """
        begins = events.row[events.row >= 0]
        lane = np.empty(len(slices), np.int64)
        lane[begins] = events.lane[events.row >= 0]
        threads = pa.array([_thread_fields(track) for track in lanes], pa.string())
        for first in range(0, len(slices), CHUNK_ROWS):
            rows = np.arange(first, min(first + CHUNK_ROWS, len(slices)))
            self._write(slices.take(rows), threads.take(pa.array(lane[rows])))

    def _write(self, slices: Slices, threads: pa.Array) -> None:
        texts, rows = [_complete_events(slices, threads)], [np.arange(len(slices))]
        for phase, lists in (('"s"', slices.flow_out), ('"f","bp":"e"', slices.flow_in)):
            if lists is not None:
                counts = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
                own = np.repeat(rows[0], counts)
                rows.append(own)
                texts.append(_flow_events(phase, threads.take(pa.array(own)), slices.start_ns[own], lists))
        order = np.argsort(np.concatenate(rows), kind="stable")
        self._events.write(pa.concat_arrays(texts).take(pa.array(order)))

    def add_counter(self, track: Track, time_ns: Ints, values: npt.NDArray[np.float64]) -> None:
        """Writes counter events ("C")."""
        label = json.dumps(track.unit or "value")
        head = f'{{"ph":"C","pid":{_process_number(track)},"name":{json.dumps(track.name)},"ts":'
        kept = np.isfinite(values)
        text = json_values(pa.array(values[kept], pa.float64()))
        self._events.write(joined(head, microseconds(time_ns[kept]), f',"args":{{{label}:', text, "}}"))

    def _metadata(self, name: str, pid: int, tid: int, arguments: dict[str, Any]) -> None:
        event = {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": arguments}
        self._events.write(pa.array([json.dumps(event)]))


def _thread_fields(track: Track) -> str:
    return f'"pid":{_process_number(track)},"tid":{_thread_number(track)}'


def _complete_events(slices: Slices, threads: pa.Array) -> pa.Array:
    duration = microseconds(slices.end_ns - slices.start_ns)
    times = joined(',"ts":', microseconds(slices.start_ns), ',"dur":', duration)
    names = json_values(slices.name)
    category = ""
    if slices.category is not None:
        category = pc.fill_null(joined(',"cat":', json_values(slices.category)), "")
    return joined(
        '{"ph":"X",', threads, ',"name":', names, category, times, ',"args":', _arguments(slices), "}"
    )


def _flow_events(phase: str, threads: pa.Array, time_ns: Ints, lists: pa.Array) -> pa.Array:
    # Readers take the text for a hexadecimal number of 64 bits.
    numbers = pa.array([f"{number:#x}" for number in lists.flatten().to_pylist()], pa.string())
    head = f'{{"ph":{phase},"cat":"dependency","name":"dependency",'
    return joined(head, threads, ',"id":"', numbers, '","ts":', microseconds(time_ns), "}")


def _arguments(slices: Slices) -> pa.Array:
    columns = dict(slices.arguments)
    if slices.source_file is not None:
        line = slices.source_line if slices.source_line is not None else pa.nulls(len(slices), pa.int64())
        columns["source"] = joined(
            slices.source_file.cast(pa.string()), ":", line.fill_null(0).cast(pa.string())
        )
    own = json_objects(columns, len(slices))
    return own if slices.arguments_json is None else merged_objects(slices.arguments_json, own)


def _device(track: Track) -> dict[str, int]:
    """What a track of a device tells of it."""
    numbers = {"device": track.device_idx, "stream": track.stream}
    return {name: number for name, number in numbers.items() if number is not None}


def _process_like(track: Track) -> Track:
    """The track that stands as a process: a process itself, or a heading directly below one."""
    is_heading = track.kind in (TrackKind.CORE, TrackKind.GROUP)
    if track.parent is None or (is_heading and track.parent.parent is None):
        return track
    return _process_like(track.parent)


def _process_number(track: Track) -> int:
    owner = _process_like(track)
    return owner.process_id if owner.kind is TrackKind.PROCESS else FIRST_GROUP_PID + owner.uid


def _thread_number(track: Track) -> int:
    return track.thread_id or track.uid + FIRST_GROUP_PID


def _names(track: Track) -> list[str]:
    return [*(_names(track.parent) if track.parent else []), track.name]


def _sort_index(track: Track) -> int:
    """Headings' ranks first, then the track's own, then the order of lanes."""
    owner = _process_like(track)
    rank = track.rank
    if track.parent is not None and track.parent is not owner:
        rank = track.parent.rank
    return rank * 10_000 + track.uid % 10_000


FORMAT = ExportFormat(
    "Chrome trace", ".trace.json", "Opens in chrome://tracing and many viewers.", export_chrome
)
