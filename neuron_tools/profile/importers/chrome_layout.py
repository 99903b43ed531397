"""Processes and tracks of a Chrome trace: which events share one, and what its metadata events call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.importers.dialect import Dialect
from neuron_tools.profile.importers.distinct import distinct_rows
from neuron_tools.profile.importers.json_rows import JsonRows, KeySet
from neuron_tools.profile.importers.json_text import loads
from neuron_tools.profile.importers.names import split_rank
from neuron_tools.profile.importers.recording import Process, Recording, Track
from neuron_tools.profile.store.recorded import Numbering, TextCodes

LARGEST_NUMBER = (1 << 63) - 1
SHIFT = 31
MOST_METADATA = 1 << 20
COUNTER_UNIT = "counter_unit "
"""Begins the name of the metadata events with which our own export tells units, before the counter's name."""
_OF_PROCESS = ("process_", COUNTER_UNIT)
_LOCAL = KeySet(["local", "global"])


@frozen
class _LaneKey:
    """What events of one track share.

    Attributes:
        kind: "thread", "async" or "counter".
        pid: Process as the file spells it.
        name: Thread as the file spells it, or the name of the asynchronous track or counter.
        series: Series of a counter.
    """

    kind: str
    pid: str
    name: str
    series: str = ""


class ChromeLayout:
    """Numbers tracks as events name them, and builds the tree of tracks when all is read."""

    def __init__(self, recording: Recording, dialect: Dialect) -> None:
        self._recording = recording
        self._dialect = dialect
        self._texts = TextCodes()
        self._lanes: Numbering[_LaneKey] = Numbering()
        self._async_keys: Numbering[int] = Numbering()
        self._metadata: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._processes: dict[str, int] = {}
        self._groups: dict[tuple[int, tuple[str, ...]], int] = {}

    def thread_lanes(self, rows: JsonRows) -> Ints:
        """Track of each event, int64, shape (rows,): one for each process and thread."""
        pid, tid = self._spelled(rows, "pid"), self._spelled(rows, "tid")
        return self._number(pid << SHIFT | tid, lambda text, other: _LaneKey("thread", text, other))

    def async_lanes(self, rows: JsonRows) -> Ints:
        """Track of each asynchronous event: one for each process and category."""
        pid, category = self._spelled(rows, "pid"), self._texts.encode(rows.texts("cat"))
        return self._number(pid << SHIFT | category, lambda text, other: _LaneKey("async", text, other))

    def async_keys(self, rows: JsonRows) -> Ints:
        """What begins and ends of one asynchronous span share: category, id, process where it is local."""
        local = rows.objects("id2", _LOCAL)
        number = np.where(rows.has("id2"), local.hashes("local") ^ local.hashes("global"), rows.hashes("id"))
        mixed = number ^ (rows.hashes("cat") << np.uint64(1)) ^ (rows.hashes("scope") << np.uint64(2))
        process = np.where(local.has("local"), rows.hashes("pid"), np.uint64(0)) << np.uint64(3)
        keys: Ints = (mixed ^ process).astype(np.int64)
        return keys

    def counter_lane(self, pid: str, name: str, series: str) -> int:
        """Track of a counter that a dialect makes; `pid` as the file spells it."""
        return self._lanes.number(_LaneKey("counter", pid, name, series))

    def counter_lanes(self, rows: JsonRows, series: pa.DictionaryArray) -> Ints:
        """Track of each sample: one for each process, counter and series."""
        pid, name = self._spelled(rows, "pid"), self._texts.encode(rows.texts("name"))
        which = self._texts.encode(series)
        numbers = rows.texts("id")
        if numbers.null_count < len(numbers):
            name = name.copy()
            codes = self._texts.encode(numbers)
            pairs = {pair: self._counter_name(*pair) for pair in set(zip(name.tolist(), codes.tolist()))}
            name = np.array([pairs[pair] for pair in zip(name.tolist(), codes.tolist())], np.int64)
        different, own = distinct_rows(pid, name, which)
        texts = self._texts.texts
        lanes = [
            self._lanes.number(_LaneKey("counter", *(texts[code] for code in codes)))
            for codes in different.tolist()
        ]
        return np.array(lanes, np.int64)[own]

    def add_metadata(self, rows: JsonRows) -> None:
        """Takes metadata events: names, labels and order of processes and threads."""
        columns = (rows.texts("name"), rows.spelled("pid"), rows.spelled("tid"), rows.json("args"))
        for name, pid, tid, arguments in zip(*(column.to_pylist() for column in columns)):
            if len(self._metadata) >= MOST_METADATA:
                self._recording.warn("Metadata events beyond the first million were left out.")
                return
            values = _arguments(arguments)
            if values is not None and name is not None:
                owner = "" if name.startswith(_OF_PROCESS) else tid or ""
                self._metadata[(name, pid or "", owner)] = values

    def finish(self) -> None:
        """Builds the processes and tracks of all events that were numbered."""
        pids = dict.fromkeys(key.pid for key in self._lanes.keys)
        ordinary = [pid for pid in pids if self._device(pid) is None and not self._dialect.is_annotation(pid)]
        for pid in sorted(ordinary, key=lambda pid: not self._dialect.launches(pid)):
            self._process(pid)  # devices belong to the first one
        counters = [key for key in self._lanes.keys if key.kind == "counter"]
        several = (
            {
                (key.pid, key.name)
                for key in counters
                if any(k.series != key.series for k in counters if (k.pid, k.name) == (key.pid, key.name))
            }
            if len(counters) < 1000
            else {(key.pid, key.name) for key in counters}
        )
        for key in self._lanes.keys:
            make: dict[str, Callable[[_LaneKey], Track]] = {"thread": self._thread, "async": self._async}
            track = (
                self._counter(key, (key.pid, key.name) in several)
                if key.kind == "counter"
                else make[key.kind](key)
            )
            self._recording.add_lane(self._recording.add_track(track))

    def _spelled(self, rows: JsonRows, key: str) -> Ints:
        return self._texts.encode(rows.spelled(key))

    def _counter_name(self, name: int, number: int) -> int:
        text = self._texts.texts[number]
        return self._texts.number(f"{self._texts.texts[name]} {text}") if text else name

    def _number(self, packed: Ints, make: Callable[[str, str], _LaneKey]) -> Ints:
        texts = self._texts.texts
        values, which = np.unique(packed, return_inverse=True)
        mask = (1 << SHIFT) - 1
        lanes = [self._lanes.number(make(texts[v >> SHIFT], texts[v & mask])) for v in values.tolist()]
        return np.array(lanes, np.int64)[which.reshape(-1)] if lanes else np.zeros(0, np.int64)

    def _of(self, event: str, pid: str, tid: str = "") -> dict[str, Any]:
        return self._metadata.get((event, pid, tid), {})

    def _device(self, pid: str) -> int | None:
        named = self._of("process_name", pid)
        if _path(named):  # our own export tells all of it
            return _integer(named.get("device"))
        name = _text(named.get("name"))
        return self._dialect.device_of(pid, name, _text(self._of("process_labels", pid).get("labels")))

    def _process(self, pid: str) -> tuple[int, int | None]:
        """Process of a pid of the trace, and the track under which what belongs to the pid stands."""
        named = self._of("process_name", pid)
        path = _path(named) or [_text(named.get("name")) or _default_name("Process", pid)]
        device = self._device(pid)
        if (device is not None and len(path) < 2) or self._dialect.is_annotation(pid):
            labels = _text(self._of("process_labels", pid).get("labels"))
            label = labels or (path[0] if device is None else f"GPU {device}")
            owner = (
                next(iter(self._processes.values())) if self._processes else self._new_process("", Process())
            )
            if device is None:
                return owner, None
            return owner, self._group(owner, (label,), device)
        number = _integer(named.get("process_id")) if "process_id" in named else _number(pid)
        key = f"{path[0]}\0{number}" if len(path) > 1 or "process_id" in named else pid
        if key not in self._processes:
            rank, title = split_rank(path[0])
            self._new_process(key, Process(name=title, process_id=number, rank=rank))
        process = self._processes[key]
        group: int | None = None
        for length in range(1, len(path)):
            own = device if length == len(path) - 1 else None
            group = self._group(process, tuple(path[1 : length + 1]), own, group)
        return process, group

    def _new_process(self, key: str, process: Process) -> int:
        self._processes[key] = self._recording.add_process(process)
        return self._processes[key]

    def _group(
        self, process: int, path: tuple[str, ...], device: int | None = None, parent: int | None = None
    ) -> int:
        key = (process, path)
        if key not in self._groups:
            track = Track(process, path[-1], "other", parent, device_idx=device)
            self._groups[key] = self._recording.add_track(track)
        return self._groups[key]

    def _thread(self, key: _LaneKey) -> Track:
        process, group = self._process(key.pid)
        named = self._of("thread_name", key.pid, key.name)
        device = self._device(key.pid)
        if device is not None and self._dialect.is_host_thread(key.pid, key.name):
            device = group = None
        elif device is None and not _path(named):
            device = self._dialect.device_of_thread(key.pid, key.name)
            group = group if device is None else self._group(process, (f"GPU {device}",), device)
        kind = "thread" if device is None else "stream"
        name = _text(named.get("name")) or _default_name(kind.capitalize(), key.name)
        if self._dialect.is_annotation(key.pid):
            kind = "annotation"
        path = _path(named)
        if path:
            kind, name = _text(named.get("kind")) or "other", path[-1]
            kind = kind if kind in ("thread", "other") else "other"
            device, stream = _integer(named.get("device")), _integer(named.get("stream"))
            kind = kind if stream is None else "stream"
            for heading in path[:-1]:
                group = self._group(process, (*self._path_of(group), heading), None, group)
        sort_index = _integer(self._of("thread_sort_index", key.pid, key.name).get("sort_index"))
        number = _number(key.name) if kind != "other" else None
        if path and kind == "stream":
            number = stream if stream is not None and stream >= 0 else None
        return Track(process, name, kind, group, device, number, sort_index)

    def _path_of(self, group: int | None) -> tuple[str, ...]:
        names: tuple[str, ...] = ()
        while group is not None:
            track = self._recording.tracks[group]
            names, group = (track.name, *names), track.parent
        return names

    def _async(self, key: _LaneKey) -> Track:
        process, group = self._process(key.pid)
        return Track(process, key.name or "asynchronous", "other", group, self._device(key.pid))

    def _counter(self, key: _LaneKey, is_one_of_several: bool) -> Track:
        process, group = self._process(key.pid)
        name = f"{key.name} {key.series}".strip() if is_one_of_several else key.name
        about = self._of(f"{COUNTER_UNIT}{key.name}", key.pid)
        unit = _text(about.get("unit"))
        for heading in _path(about)[:-1]:
            group = self._group(process, (*self._path_of(group), heading), None, group)
        return Track(process, name or key.series, "counter", group, self._device(key.pid), unit=unit)


def _arguments(text: str | None) -> dict[str, Any] | None:
    values = loads(text) if text else {}
    return values if isinstance(values, dict) else None


def _path(named: dict[str, Any]) -> list[str]:
    path = named.get("path")
    return path if isinstance(path, list) and all(isinstance(part, str) for part in path) else []


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, (dict, list)):
        return None
    return str(value) or None


def _integer(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= LARGEST_NUMBER:
        return None
    return int(value) if abs(value) < LARGEST_NUMBER else None


def _number(spelled: str) -> int | None:
    """The number of a process or thread, if that is what the trace calls it by."""
    text = spelled.strip('"')
    is_number = text.removeprefix("-").isdecimal() and len(text) < 19
    return int(text) if is_number else None


def _default_name(what: str, spelled: str) -> str:
    if spelled.startswith('"'):
        try:
            return str(loads(spelled)) or what
        except ValueError:
            return spelled.strip('"') or what
    return f"{what} {spelled}".strip()
