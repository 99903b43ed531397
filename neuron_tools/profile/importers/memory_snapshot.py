"""PyTorch's memory snapshots: what `torch.cuda.memory._dump_snapshot` and torch_npu's twin pickle.

A snapshot has the allocator's segments as they are and, where the history was recorded, its events. Of each
device the bytes allocated and reserved become counters, which end with what the segments hold; each event is
a mark with its size at the line of the program that caused it. Nothing that a pickle could run is allowed:
a snapshot is made of plain lists, dictionaries, texts and numbers
(https://docs.pytorch.org/docs/stable/torch_cuda_memory.html).
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import PurePath
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa

from neuron_tools.arrays import Floats, Ints
from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.json_decode import LARGEST_TIME
from neuron_tools.profile.importers.lanes import NO_NUMBER, Lanes
from neuron_tools.profile.importers.recording import LANE, Clock, Recording
from neuron_tools.profile.importers.trace_file import TraceFile

NAME = "torch memory snapshot"
LARGEST_BYTES = 1 << 30
CATEGORY = "memory"
ALLOCATED, RESERVED = "allocated", "reserved"
_PROTOCOLS = range(2, 6)
_NO_TIMES = np.zeros(0, np.int64)
_FIRST_KEYS = (b"segments", b"device_traces")
_KEY_BYTES = 256
_CHANGES = {
    "alloc": (ALLOCATED, 1), "free_requested": (ALLOCATED, -1), "free": (ALLOCATED, -1),
    "segment_alloc": (RESERVED, 1), "segment_free": (RESERVED, -1), "segment_map": (RESERVED, 1),
    "segment_unmap": (RESERVED, -1),
}  # fmt: skip
"""What each action adds to, and its sign."""
_HELD = {ALLOCATED: "allocated_size", RESERVED: "total_size"}
_MOST_DEVICES = 1 << 10
_DAMAGED = (EOFError, ValueError, TypeError, LookupError, AttributeError, MemoryError, OverflowError)
"""What a damaged pickle raises beside its own error."""
_LIBRARIES = frozenset({"torch", "torch_npu"})


class _Event(NamedTuple):
    """An event of an allocator."""

    action: str
    size: int
    address: int
    stream: int
    time_us: int | None
    file: str | None
    line: int | None


class _NotPlainError(pickle.UnpicklingError):
    """A pickle holds more than plain data."""


class _Unpickler(pickle.Unpickler):
    """Loads plain data alone."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuses whatever is not plain data.

        Raises:
            _NotPlainError: Always.
        """
        raise _NotPlainError(f"it holds {module}.{name}")


def recognise(head: Head) -> bool:
    """Whether it is a pickle whose first key is one of a snapshot's."""
    content = head.content
    is_pickle = content[:1] == b"\x80" and content[1:2] != b"" and content[1] in _PROTOCOLS
    return is_pickle and any(key in content[:_KEY_BYTES] for key in _FIRST_KEYS)


def read(file: TraceFile, recording: Recording) -> None:
    """Stages the counters and the events.

    Raises:
        TraceError: It is damaged, too large, or holds more than plain data.
    """
    snapshot = _loaded(file)
    segments = [each for each in _list(snapshot.get("segments")) if isinstance(each, dict)]
    traces = [list(_events(each)) for each in _list(snapshot.get("device_traces"))]
    lanes = Lanes(recording, lambda device: f"device {device}")
    lanes.process(NO_NUMBER, file.path.stem)
    devices = {_whole(each.get("device")) for each in segments}
    devices |= {number for number, events in enumerate(traces) if events}
    has_times = all(event.time_us is not None for events in traces for event in events)
    times = [_times(events, has_times) for events in traces]
    first = min((int(each[0]) for each in times if len(each)), default=0)
    for device in sorted(devices & set(range(_MOST_DEVICES))):
        events, at = (traces[device], times[device]) if device < len(traces) else ([], _NO_TIMES)
        held = [each for each in segments if _whole(each.get("device")) == device]
        for kind in (ALLOCATED, RESERVED):
            lane = lanes.counter(NO_NUMBER, f"device {device}", f"memory {kind}", "bytes")
            _stage_counter(recording, lane, _sizes(events, kind, held), np.concatenate([[first], at]))
        _stage_events(recording, lanes, device, events, at)
    recording.clock = Clock(0 if has_times and any(traces) else None)
    if not has_times:
        recording.warn("The snapshot's events have no times: they stand a microsecond apart, in their order.")


def _loaded(file: TraceFile) -> dict[Any, Any]:
    content = file.content(LARGEST_BYTES, "record fewer events")
    try:
        found = _Unpickler(BytesIO(content)).load()
    except _NotPlainError as error:
        raise TraceError(f"{file.path} is no memory snapshot ({error}).") from error
    except (pickle.UnpicklingError, *_DAMAGED) as error:
        raise TraceError(f"{file.path} is no whole memory snapshot: record or copy it again.") from error
    if not isinstance(found, dict):
        raise TraceError(f"{file.path} is a pickle, but no memory snapshot.")
    return found


def _events(trace: Any) -> Iterator[_Event]:
    """The events of one device; what has no action is left out."""
    for entry in _list(trace):
        action = entry.get("action") if isinstance(entry, dict) else None
        if isinstance(action, str):
            file, line = _own_line(_list(entry.get("frames")))
            time_us = entry.get("time_us")
            yield _Event(
                action, _whole(entry.get("size")), _whole(entry.get("addr")), _whole(entry.get("stream")),
                _whole(time_us) if isinstance(time_us, int) else None, file, line,
            )  # fmt: skip


def _own_line(frames: Sequence[Any]) -> tuple[str | None, int | None]:
    """File and line of the innermost Python frame outside of PyTorch, or else of the innermost one."""
    found: tuple[str | None, int | None] = (None, None)
    for frame in frames:
        file = frame.get("filename") if isinstance(frame, dict) else None
        if not isinstance(file, str) or not file.endswith(".py"):
            continue
        line = _whole(frame.get("line"))
        place = (file, line if 0 < line < 1 << 31 else None)
        if not _LIBRARIES.intersection(PurePath(file).parts):
            return place
        found = found if found[0] else place
    return found


def _times(events: Sequence[_Event], has_times: bool) -> Ints:
    told = [event.time_us if has_times else place for place, event in enumerate(events)]
    bound = LARGEST_TIME // 2000
    return np.array([1000 * min(max(time or 0, -bound), bound) for time in told], np.int64)


def _sizes(events: Sequence[_Event], kind: str, segments: Sequence[dict[Any, Any]]) -> Floats:
    """Bytes before the first event, and after each; the last is what the segments hold."""
    changes = [_CHANGES.get(event.action, ("", 0)) for event in events]
    own = [sign * event.size if of == kind else 0 for event, (of, sign) in zip(events, changes)]
    last = sum(_whole(segment.get(_HELD[kind])) for segment in segments)
    after = np.concatenate([[0], np.cumsum(np.array(own, np.float64))])
    sizes: Floats = after + (last - after[-1])
    return sizes


def _stage_counter(recording: Recording, lane: int, sizes: Floats, times: Ints) -> None:
    """Samples wherever the size changes, the first at the beginning."""
    changed = np.concatenate([[True], sizes[1:] != sizes[:-1]])
    recording.append_samples(lane, times[changed], sizes[changed])


def _stage_events(
    recording: Recording, lanes: Lanes, device: int, events: Sequence[_Event], times: Ints
) -> None:
    if not events:
        return
    lane = lanes.thread(NO_NUMBER, device, f"allocator of device {device}")
    columns: dict[str, Any] = {
        LANE: pa.array(np.full(len(events), lane, np.int32)),
        "start_ts": pa.array(times),
        "end_ts": pa.array(times),
        "name": pa.array([event.action for event in events], pa.string()).dictionary_encode(),
        "category": pa.repeat(CATEGORY, len(events)).dictionary_encode(),
        "source_file": pa.array([event.file for event in events], pa.string()).dictionary_encode(),
        "source_line": pa.array([event.line for event in events], pa.int32()),
    }
    if recording.with_arguments:
        columns["arguments_json"] = pa.array(map(_arguments, events), pa.string())
    lanes.add_spans(columns)


def _arguments(event: _Event) -> str:
    return json.dumps({"bytes": event.size, "address": event.address, "stream": event.stream})


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _whole(value: Any) -> int:
    """A whole number that fits; 0 for anything else."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and abs(value) < 1 << 62 else 0
