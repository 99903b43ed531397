"""torch.profiler's memory timeline: what `export_memory_timeline` writes for one device.

`raw.json` has events (time, action, bytes, category), of which a change of version is two: the bytes leave
one category and enter another. `json` has a list of times and a list of sizes by category at each. Both
become a counter for each category and one of their sum; numbers of categories are those of PyTorch 2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.json_decode import LARGEST_TIME
from neuron_tools.profile.importers.recording import Clock, Process, Recording, Track
from neuron_tools.profile.importers.trace_file import TraceFile

NAME = "torch memory timeline"
CATEGORIES = (
    "parameters", "optimizer state", "inputs", "temporaries", "activations", "gradients", "autograd",
    "unknown",
)  # fmt: skip
TOTAL = "allocated"
LARGEST_TEXT_BYTES = 512 << 20
_LONGEST_EVENT_BYTES = 256
_YEAR_2001_NS = 1_000_000_000 * 1_000_000_000
_NUMBER = rb"\s*(-?\d{1,19})\s*"
_EVENT = re.compile(rb"\[" + b",".join([_NUMBER] * 4) + rb"\]")
_RAW = re.compile(rb"^\[\s*" + _EVENT.pattern + rb"\s*[,\]]")
_SIZES = re.compile(rb"^\[\s*\[\s*(?:-?\d{1,19}\s*,\s*){4}-?\d")


def recognise(head: Head) -> bool:
    """Whether the document is a list of events of four numbers, or a list of times with sizes after it."""
    return head.is_list and bool(_RAW.match(head.text) or _SIZES.match(head.text))


def read(file: TraceFile, recording: Recording) -> None:
    """Stages the counters.

    Raises:
        TraceError: It is no memory timeline, or too large for one.
    """
    process = recording.add_process(Process(name="memory"))
    tracks = [
        Track(process, f"memory: {name}", "counter", sort_index=place, unit="bytes")
        for place, name in enumerate((*CATEGORIES, TOTAL))
    ]
    lanes = [recording.add_lane(recording.add_track(track)) for track in tracks]
    if _RAW.match(Head.of(file).text):
        _add_events(file, recording, np.array(lanes, np.int32))
    else:
        _add_sizes(file, recording, lanes)
    is_absolute = (recording.first_ns or 0) > _YEAR_2001_NS
    recording.clock = Clock(0 if is_absolute else None)
    if file.is_truncated:
        recording.warn("The file ends in the middle; what stands before was imported.")


def _add_events(file: TraceFile, recording: Recording, lanes: Any) -> None:
    held = np.zeros(len(CATEGORIES), np.int64)
    first: int | None = None
    for events in _events(file):
        events = events[(events[:, 3] >= 0) & (events[:, 3] < len(CATEGORIES))]
        if not len(events):
            continue
        time_ns = np.clip(events[:, 0], -LARGEST_TIME, LARGEST_TIME)
        if first is None:
            later = time_ns[time_ns >= 0]
            first = int(later[0]) if len(later) else 0
        time_ns = np.where(time_ns < 0, first, time_ns)  # what was there before has the time -1
        kind, change = events[:, 3], events[:, 2]
        own = np.zeros(len(events), np.int64)
        for category in np.unique(kind).tolist():
            chosen = kind == category
            own[chosen] = held[category] + np.cumsum(change[chosen])
            held[category] = own[chosen][-1]
        total = held.sum() - change.sum() + np.cumsum(change)
        _stage(recording, lanes[kind], time_ns, own)
        _stage(recording, np.full(len(events), lanes[-1]), time_ns, total)


def _events(file: TraceFile) -> Iterator[Ints]:
    """Chunks of (time, action, bytes, category), int64, shape (events, 4)."""
    rest = b""
    for block in file.blocks():
        text = rest + block
        found = [match.groups() for match in _EVENT.finditer(text)]
        last = text.rfind(b"]") + 1
        rest = text[last:][-_LONGEST_EVENT_BYTES:]
        numbers = [[_bounded(number) for number in event] for event in found]
        yield np.array(numbers, np.int64).reshape(-1, 4)


def _bounded(number: bytes) -> int:
    return min(max(int(number), -LARGEST_TIME), LARGEST_TIME)


def _add_sizes(file: TraceFile, recording: Recording, lanes: list[int]) -> None:
    times, sizes = _times_and_sizes(file)
    time_ns = np.array([_bounded(b"%d" % time) if isinstance(time, int) else 0 for time in times], np.int64)
    rows = [row if isinstance(row, list) else [] for row in sizes]
    width = min(max(map(len, rows), default=0), len(CATEGORIES) + 1)
    shape = (len(rows), width)
    held = np.zeros(shape)
    for number, row in enumerate(rows):
        for place, size in enumerate(row[:width]):
            held[number, place] = _size(size)
    # The first column is what lies below the lowest category, 0; then the categories follow.
    named = held[:, 1:] if width == len(CATEGORIES) + 1 else held
    for place in range(named.shape[1]):
        _stage(recording, np.full(len(time_ns), lanes[place]), time_ns, named[:, place])
    _stage(recording, np.full(len(time_ns), lanes[-1]), time_ns, named.sum(axis=1))


def _size(told: Any) -> float:
    is_number = isinstance(told, (int, float)) and told == told
    return float(min(max(told, -LARGEST_TIME), LARGEST_TIME)) if is_number else 0.0


def _times_and_sizes(file: TraceFile) -> tuple[list[Any], list[Any]]:
    content = file.content(LARGEST_TEXT_BYTES, "export the timeline as raw.json.gz, which is read in parts")
    try:
        times, sizes = json.loads(content)
        count = min(len(times), len(sizes))
        return list(times)[:count], list(sizes)[:count]
    except (ValueError, TypeError, RecursionError) as error:
        raise TraceError(f"{file.path} is no memory timeline: it is not two lists of one length.") from error


def _stage(recording: Recording, lanes: Any, time_ns: Ints, values: Any) -> None:
    recording.append_samples(lanes, time_ns, values)
