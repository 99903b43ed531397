"""JAX, XLA and TensorFlow: the `.xplane.pb` of their profilers.

Planes are the host and the devices, their lines are threads and streams, their events refer to names and
statistics in tables of the plane. Field numbers are those of tsl/profiler/protobuf/xplane.proto.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.importers.head import Head
from neuron_tools.profile.importers.json_decode import LARGEST_TIME
from neuron_tools.profile.importers.json_members import finite_doubles, objects_of_members, quoted
from neuron_tools.profile.importers.names import device_of_plane, places, source_place, xla_function_place
from neuron_tools.profile.importers.protobuf_fields import Messages
from neuron_tools.profile.importers.protobuf_scan import split_messages
from neuron_tools.profile.importers.recording import LANE, Clock, Process, Recording, Track
from neuron_tools.profile.importers.spans import stage_spans
from neuron_tools.profile.importers.trace_file import TraceFile

NAME = "XLA XSpace"
CHUNK_EVENTS = 1 << 16
LARGEST_FILE_BYTES = 2 << 30
PICOSECONDS = 1000
YEAR_2001_NS = 1_000_000_000 * 1_000_000_000
"""Times above it can only be counted from 1970."""

SPACE_PLANES, SPACE_HOSTS = 1, 4
PLANE_NAME, PLANE_LINES, PLANE_EVENT_NAMES, PLANE_STAT_NAMES, PLANE_STATS = 2, 3, 4, 5, 6
MAP_KEY, MAP_VALUE = 1, 2
METADATA_ID, METADATA_NAME, METADATA_DISPLAY_NAME = 1, 2, 4
LINE_ID, LINE_NAME, LINE_TIME_NS, LINE_EVENTS, LINE_DISPLAY_NAME = 1, 2, 3, 4, 11
EVENT_METADATA, EVENT_OFFSET_PS, EVENT_DURATION_PS, EVENT_STATS = 1, 2, 3, 4
STAT_METADATA, STAT_DOUBLE, STAT_UINT, STAT_INT, STAT_TEXT, STAT_REFERENCE = 1, 2, 3, 4, 5, 7
START_TIME = "profile_start_time"


def recognise(head: Head) -> bool:
    """Whether the file begins with a plane whose name is a path, as XLA's are."""
    data = np.frombuffer(head.content, np.uint8)
    if len(data) < 4 or data[0] != SPACE_PLANES << 3 | 2:
        return False
    names = (b"/host:", b"/device:", b"Task Environment", b"#", b"/")
    fields = Messages(data, np.array([_first_field(data)]), np.array([len(data)]))
    starts, stops = fields.places(PLANE_NAME)
    return bool(starts[0] >= 0) and data[starts[0] : stops[0]].tobytes().startswith(names)


def read(file: TraceFile, recording: Recording) -> None:
    """Stages the profile."""
    data = _content(file)
    planes = _planes(data, recording)
    hosts = Messages(data, np.array([0]), np.array([len(data)])).texts(SPACE_HOSTS)
    reader = _Reader(recording, hosts[0].as_py())
    for index in range(len(planes)):
        reader.add_plane(Messages(data, planes.starts[index : index + 1], planes.stops[index : index + 1]))
    reader.finish()
    if file.is_truncated:
        recording.warn("The file ends in the middle; what stands before was imported.")


def _first_field(data: np.ndarray[Any, np.dtype[np.uint8]]) -> int:
    """Where the first plane's content begins, behind its tag and length."""
    position = 1
    while position < min(len(data), 10) and data[position] >= 0x80:
        position += 1
    return position + 1


def _content(file: TraceFile) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The whole file: a plane may be most of it. Mapped where it is not packed."""
    if not file.is_packed and file.size_bytes:
        mapped: np.ndarray[Any, np.dtype[np.uint8]] = np.memmap(file.path, np.uint8, "r")
        return mapped
    return np.frombuffer(file.content(LARGEST_FILE_BYTES, "the format allows no more"), np.uint8)


def _planes(data: np.ndarray[Any, np.dtype[np.uint8]], recording: Recording) -> Messages:
    starts, stops = np.empty(1 << 12, np.int64), np.empty(1 << 12, np.int64)
    count, position, _ = split_messages(data, 0, len(data), SPACE_PLANES, starts, stops)
    if position < len(data):
        recording.warn("The file ends in the middle or is damaged there; what stands before was imported.")
        starts[count], stops[count] = _rest(data, position)
        count += 1
    return Messages(data, starts[:count].copy(), stops[:count].copy())


def _rest(data: np.ndarray[Any, np.dtype[np.uint8]], position: int) -> tuple[int, int]:
    """The plane that is cut off, as far as it goes."""
    return position + _first_field(data[position:]), len(data)


@frozen
class _Names:
    """A plane's names by number."""

    ids: Ints
    names: pa.Array

    @classmethod
    def of(cls, plane: Messages, field: int) -> _Names:
        _, entries = plane.messages(field)
        keys, _ = entries.number(MAP_KEY)
        owner, values = entries.messages(MAP_VALUE)
        names = pc.coalesce(values.texts(METADATA_NAME), values.texts(METADATA_DISPLAY_NAME), "")
        own, has_own = values.number(METADATA_ID)
        ids = np.where(has_own, own, keys[owner])
        order = np.argsort(ids, kind="stable")
        return cls(ids[order], names.take(pa.array(order)))

    def look_up(self, ids: Ints) -> pa.Array:
        """Names; null where a number is not known."""
        if not len(self.ids):
            return pa.nulls(len(ids), pa.string())
        place = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return self.names.take(pa.array(place, mask=self.ids[place] != ids))


class _Reader:
    def __init__(self, recording: Recording, host: str | None) -> None:
        self._recording = recording
        self._host = host
        self._process: int | None = None
        self._start_unix_ns: int | None = None
        self._ids = 0

    def add_plane(self, plane: Messages) -> None:
        name = plane.texts(PLANE_NAME)[0].as_py() or "plane"
        events, stats = _Names.of(plane, PLANE_EVENT_NAMES), _Names.of(plane, PLANE_STAT_NAMES)
        self._find_start(plane, stats)
        _, lines = plane.messages(PLANE_LINES)
        device = device_of_plane(name)
        parent: int | None = None
        for index in range(len(lines)):
            line = Messages(lines.data, lines.starts[index : index + 1], lines.stops[index : index + 1])
            _, found = line.messages(LINE_EVENTS)
            if not len(found):
                continue
            if parent is None and not name.startswith("/host:CPU"):
                parent = self._recording.add_track(
                    Track(self._owner(), name, "other", device_idx=device, sort_index=device)
                )
            lane = self._recording.add_lane(self._recording.add_track(self._track(line, device, parent)))
            self._add_events(line, found, lane, events, stats)

    def finish(self) -> None:
        """Tells the clock."""
        is_absolute = (self._recording.first_ns or 0) > YEAR_2001_NS
        self._recording.clock = Clock(0 if is_absolute else self._start_unix_ns, self._host)

    def _owner(self) -> int:
        if self._process is None:
            self._process = self._recording.add_process(Process(name=self._host or "XLA", host=self._host))
        return self._process

    def _find_start(self, plane: Messages, names: _Names) -> None:
        _, stats = plane.messages(PLANE_STATS)
        if not len(stats):
            return
        ids, _ = stats.number(STAT_METADATA)
        values, has_value = stats.number(STAT_UINT)
        known = names.look_up(ids).to_pylist()
        if START_TIME in known:
            place = known.index(START_TIME)
            if has_value[place] and 0 < values[place] < LARGEST_TIME:
                self._start_unix_ns = int(values[place])

    def _track(self, line: Messages, device: int | None, parent: int | None) -> Track:
        name = pc.coalesce(line.texts(LINE_DISPLAY_NAME), line.texts(LINE_NAME))[0].as_py()
        number, _ = line.number(LINE_ID)
        title = name or f"Line {number[0]}"
        kind = "thread" if device is None else "stream"
        return Track(self._owner(), title, kind, parent, device, int(number[0]))

    def _add_events(self, line: Messages, events: Messages, lane: int, names: _Names, stats: _Names) -> None:
        line_ns, _ = line.number(LINE_TIME_NS)
        for first in range(0, len(events), CHUNK_EVENTS):
            chunk = slice(first, first + CHUNK_EVENTS)
            part = Messages(events.data, events.starts[chunk], events.stops[chunk])
            self._stage(part, int(line_ns[0]), lane, names, stats)

    def _stage(self, events: Messages, line_ns: int, lane: int, names: _Names, stats: _Names) -> None:
        offset_ps, _ = events.number(EVENT_OFFSET_PS)
        duration_ps, _ = events.number(EVENT_DURATION_PS)
        ids, _ = events.number(EVENT_METADATA)
        base = min(max(line_ns, 0), LARGEST_TIME // 2)
        start_ps, duration_ps = (
            np.clip(column, -LARGEST_TIME // 2, LARGEST_TIME // 2) for column in (offset_ps, duration_ps)
        )
        start = base + _rounded(start_ps)
        end = base + _rounded(start_ps + np.maximum(duration_ps, 0))
        title = pc.fill_null(names.look_up(ids), "").dictionary_encode()
        columns: dict[str, Any] = {
            "id": pa.array(np.arange(self._ids, self._ids + len(events))),
            LANE: pa.array(np.full(len(events), lane, np.int32)),
            "start_ts": pa.array(start),
            "end_ts": pa.array(np.where(duration_ps < 0, start - 1, end)),
            "name": title,
            **_statistics(events, stats),
        }
        place = places(title, xla_function_place)
        if place is not None:
            known = columns.get("source_file", pa.nulls(len(events), pa.string())).cast(pa.string())
            columns["source_file"] = pc.coalesce(known, place[0].cast(pa.string())).dictionary_encode()
            lines = columns.get("source_line", pa.nulls(len(events), pa.int32()))
            columns["source_line"] = pc.coalesce(lines, place[1])
        self._ids += len(events)
        stage_spans(self._recording, pa.table(columns))


def _statistics(events: Messages, names: _Names) -> dict[str, Any]:
    """Arguments, correlation and source line of events, from their statistics."""
    owner, stats = events.messages(EVENT_STATS)
    if not len(stats):
        return {}
    ids, _ = stats.number(STAT_METADATA)
    keys = pc.fill_null(names.look_up(ids), "statistic").dictionary_encode()
    found: dict[str, Any] = {
        "arguments_json": objects_of_members(len(events), owner, keys, _values(stats, names))
    }
    texts = keys.dictionary.to_pylist()
    if "correlation_id" in texts:
        own = np.flatnonzero(keys.indices.to_numpy() == texts.index("correlation_id"))
        numbers, present = _integers(stats)
        correlation = np.zeros(len(events), np.int64)
        known = np.zeros(len(events), np.bool_)
        correlation[owner[own]], known[owner[own]] = numbers[own], present[own]
        found["correlation_id"] = pa.array(correlation, mask=~known)
    if "source" in texts:
        found |= _sources(events, owner, stats, keys, texts.index("source"))
    return found


def _sources(
    events: Messages, owner: Ints, stats: Messages, keys: pa.DictionaryArray, code: int
) -> dict[str, Any]:
    own = np.flatnonzero(keys.indices.to_numpy() == code)
    texts: list[str | None] = [None] * len(events)
    for row, text in zip(owner[own].tolist(), stats.texts(STAT_TEXT).take(pa.array(own)).to_pylist()):
        texts[row] = text
    place = places(pa.array(texts, pa.string()).dictionary_encode(), source_place)
    return {} if place is None else {"source_file": place[0], "source_line": place[1]}


def _integers(stats: Messages) -> tuple[Ints, np.ndarray[Any, np.dtype[np.bool_]]]:
    signed, has_signed = stats.number(STAT_INT)
    unsigned, has_unsigned = stats.number(STAT_UINT)
    return np.where(has_signed, signed, unsigned), has_signed | has_unsigned


def _values(stats: Messages, names: _Names) -> pa.Array:
    """Values as JSON text; null for bytes, which are whole programs."""
    none = pa.scalar(None, pa.string())
    signed, has_signed = stats.number(STAT_INT)
    unsigned, has_unsigned = stats.number(STAT_UINT)
    doubles, has_double = stats.double(STAT_DOUBLE)
    reference, has_reference = stats.number(STAT_REFERENCE)
    referred = names.look_up(np.where(has_reference, reference, -1))
    return pc.coalesce(
        pc.if_else(pa.array(has_signed), pa.array(signed).cast(pa.string()), none),
        pc.if_else(pa.array(has_unsigned), pa.array(unsigned.view(np.uint64)).cast(pa.string()), none),
        pc.if_else(pa.array(has_double), finite_doubles(doubles), none),
        quoted(pc.coalesce(stats.texts(STAT_TEXT), referred)),
    )


def _rounded(picoseconds: Ints) -> Ints:
    rounded: Ints = (picoseconds + PICOSECONDS // 2) // PICOSECONDS
    return rounded
