"""What belongs to a module or an operation, on every track, as tiles to draw over the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_explorer.timeline.last_results import LastResults
from neuron_explorer.timeline.parameters import BUCKETS, ParameterError, TileRange
from neuron_explorer.timeline.span_tiles import SCHEMA
from neuron_explorer.timeline.track_places import columns_of, places_by_row, row_columns, sources_of
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.timeline.dtypes import numpy_dtype
from neuron_tools.profile.timeline.sources import SPAN_SOURCES, SpanSource

MOST_SPANS = 8_000_000
KEPT = 4
SPANS_LOOKED_AT = 50_000
KEYS = ("layer", "operation", "line", "raw_framework_id", "raw_hlo_id", "name")
_OWN_STACKS = "SELECT stack_frame_id FROM Frontier WHERE source_file || ':' || source_line = $value"
_OWN_OPERATIONS = (
    f"SELECT id FROM FrameworkInstruction WHERE split_part(stack_frame_ids, ',', 1) IN ({_OWN_STACKS})"
)


@frozen
class LitTrack:
    """The lit spans of one track by start; int64, shape (spans,)."""

    start_ns: Ints
    end_ns: Ints
    longest_ns: int

    def between(self, start_ns: int, end_ns: int) -> tuple[Ints, Ints]:
        """Start and end of those that overlap a range."""
        low = int(np.searchsorted(self.start_ns, start_ns - self.longest_ns))
        high = int(np.searchsorted(self.start_ns, end_ns))
        start, end = self.start_ns[low:high], self.end_ns[low:high]
        inside = end > start_ns
        return start[inside], end[inside]


class LitSpans:
    """Finds lit spans; the last few answers are kept."""

    def __init__(self) -> None:
        self._kept = LastResults[dict[int, LitTrack]](KEPT)

    def of(self, profile: Profile, by: str, value: str) -> dict[int, LitTrack]:
        """Lit spans by the track's place.

        Args:
            by: One of `KEYS`: `layer` takes a module with all inside it, `operation` an operation's name,
                `line` a place "file:line", also where it only is the user's own line of a stack, and `name`
                a name on any track.

        Raises:
            ParameterError: There is no such way, or the value does not fit it.
        """
        _refuse_unknown(by, value)
        return self._kept.of((profile, by, value), lambda: _found(profile, by, value))

    def rows(self, profile: Profile, by: str, value: str, table: str) -> Ints:
        """Rows of a table that are lit, ascending.

        Raises:
            ParameterError: As `of`.
        """
        _refuse_unknown(by, value)
        held = columns_of(profile, table)
        columns = row_columns(sources_of(table)[0], held)
        condition = _condition(table, held, by, "" if columns is None else columns.name)
        if not condition:
            return np.zeros(0, np.int64)
        numbered = f'SELECT *, row_number() OVER () - 1 AS lit_row FROM "{table}"'
        found = profile.query(f"SELECT lit_row FROM ({numbered}) WHERE {condition}", {"value": value})
        rows: Ints = np.sort(found["lit_row"].to_numpy().astype(np.int64))
        return rows

    def tiles(
        self, profile: Profile, by: str, value: str, places: list[int], tiles: TileRange, origin_ns: int = 0
    ) -> pa.Table:
        """Lit spans as rows of `span_tiles.SCHEMA`, by tile, track, depth and time."""
        lit = self.of(profile, by, value)
        parts = []
        for number in range(tiles.count):
            tile = TileRange(tiles.level, tiles.first + number, 1)
            for place in places:
                if place in lit:
                    columns = _tile_rows(profile, place, lit[place], tile, origin_ns)
                    parts.append((np.full(len(columns[0]), number), *columns))
        return pa.Table.from_batches([_batch(parts)])


def _refuse_unknown(by: str, value: str) -> None:
    if by not in KEYS or (by.startswith("raw_") and not value.removeprefix("-").isdecimal()):
        raise ParameterError(f"Spans cannot be lit up by {by!r}: take one of {', '.join(KEYS)}.")


def _found(profile: Profile, by: str, value: str) -> dict[int, LitTrack]:
    tables, found = profile.tables(), {}
    for source in SPAN_SOURCES:
        if source.table in tables and source.only is None:
            found.update(_found_in(profile, source, by, value))
    return found | _modules(profile, found)


def _modules(profile: Profile, lit: dict[int, LitTrack]) -> dict[int, LitTrack]:
    """Lit stretches of the tracks of modules, which have no rows: where their operations are lit, as one."""
    tracks = profile.tracks()
    operations = {
        (track.process_idx, track.core_idx): lit[place]
        for place, track in enumerate(tracks)
        if track.level == "framework" and place in lit
    }
    found = {}
    for place, track in enumerate(tracks):
        spans = operations.get((track.process_idx, track.core_idx))
        if track.level == "module" and spans is not None:
            found[place] = _joined(spans)
    return found


def _joined(spans: LitTrack) -> LitTrack:
    """Stretches that spans cover together."""
    latest = np.maximum.accumulate(spans.end_ns)
    opens = np.flatnonzero(np.append(True, spans.start_ns[1:] > latest[:-1]))
    start, end = spans.start_ns[opens], latest[np.append(opens[1:], len(latest)) - 1]
    return LitTrack(start, end, int((end - start).max()))


def _found_in(profile: Profile, source: SpanSource, by: str, value: str) -> dict[int, LitTrack]:
    """Lit tracks of one table."""
    held = columns_of(profile, source.table)
    columns = row_columns(source, held)
    places = places_by_row(profile, source)
    condition = _condition(source.table, held, by, "" if columns is None else columns.name)
    if columns is None or not places or not condition:
        return {}
    rows = profile.query(
        f"SELECT {columns.process} AS process, {columns.core} AS core, {columns.apart} AS apart,"
        f" CAST({columns.start} AS BIGINT) AS start_ns, CAST({columns.end} AS BIGINT) AS end_ns"
        f' FROM "{source.table}" WHERE ({condition}) AND {columns.start} IS NOT NULL LIMIT {MOST_SPANS}',
        {"value": value},
    )
    return _by_track(rows, places)


def _condition(table: str, held: frozenset[str], by: str, name: str) -> str:
    """Which rows of a table are lit, as SQL; "" where its rows tell nothing of it."""
    if by == "name":
        return f"{name} = $value"
    if by == "operation":
        return "framework_name = $value" if "framework_name" in held else ""
    if by == "line":
        return " OR ".join(_line_conditions(table, held))
    if by not in held:
        return ""
    if by == "layer":
        return "(layer = $value OR starts_with(layer, $value || '/'))"
    return f'"{by}" = CAST($value AS BIGINT)'


def _line_conditions(table: str, held: frozenset[str]) -> list[str]:
    """Rows that name the line, and those whose stack has it as the user's own line."""
    found = []
    if {"source_file", "source_line"} <= held:
        found.append("source_file || ':' || source_line = $value")
    if "stack_frame_ids" in held:
        found.append(f"split_part(stack_frame_ids, ',', 1) IN ({_OWN_STACKS})")
    elif "raw_framework_id" in held:
        found.append(f"raw_framework_id IN ({_OWN_OPERATIONS})")
    return [f"({condition})" for condition in found]


def _by_track(rows: pa.Table, places: dict[tuple[int, int, str], int]) -> dict[int, LitTrack]:
    if not rows.num_rows:
        return {}
    apart = rows.column("apart").combine_chunks().dictionary_encode()
    if isinstance(apart, pa.ChunkedArray):
        apart = apart.combine_chunks()
    process, core, start, end = (
        rows.column(name).to_numpy().astype(np.int64) for name in ("process", "core", "start_ns", "end_ns")
    )
    text = apart.indices.to_numpy(zero_copy_only=False)
    order = np.lexsort((start, text, core, process))
    process, core, text, start, end = (values[order] for values in (process, core, text, start, end))
    changed = np.flatnonzero(np.diff(process) | np.diff(core) | np.diff(text)) + 1
    names = apart.dictionary.to_pylist()
    found = {}
    for low, high in zip([0, *changed.tolist()], [*changed.tolist(), len(start)], strict=True):
        place = places.get((int(process[low]), int(core[low]), names[text[low]]))
        if place is not None:
            longest = int((end[low:high] - start[low:high]).max())
            found[place] = LitTrack(start[low:high], end[low:high], longest)
    return found


Columns = tuple[npt.NDArray[Any], ...]
"""tile, track, depth, start, duration, count, busy, is_bucket of rows."""


def _tile_rows(profile: Profile, place: int, lit: LitTrack, tile: TileRange, origin_ns: int) -> Columns:
    base = tile.start_ns + origin_ns
    start, end = lit.between(base, tile.end_ns + origin_ns)
    depth = _depths(profile, place, base, tile.end_ns + origin_ns, start, end)
    is_wide = end - start >= tile.bucket_ns
    begins = (start >= base).astype(np.int64)  # it counts in the tile in which it begins
    wide = (depth[is_wide], (start - base)[is_wide], (end - start)[is_wide], begins[is_wide])
    kept = ~is_wide & (start >= base)
    depth, start, end = depth[kept], start[kept], end[kept]
    bucket = (start - base) >> tile.level
    key, which = np.unique(depth * BUCKETS + bucket, return_inverse=True)
    busy_ns = np.bincount(which, end - start, minlength=len(key))
    count = np.bincount(which, minlength=len(key))
    share = np.ceil(np.minimum(busy_ns / tile.bucket_ns, 1) * 255)
    narrow = (key // BUCKETS, (key % BUCKETS) << tile.level, np.full(len(key), tile.bucket_ns), count)
    flags = np.concatenate([np.zeros(len(wide[0])), np.ones(len(key))])
    height = np.concatenate([np.full(len(wide[0]), 255.0), share])
    joined = [np.concatenate(pair) for pair in zip(wide, narrow, strict=True)]
    order = np.lexsort((joined[1], joined[0]))
    columns = (np.full(len(order), place), *joined[:3], joined[3], height, flags)
    return tuple(values[order] for values in columns)


def _depths(profile: Profile, place: int, low_ns: int, high_ns: int, start: Ints, end: Ints) -> Ints:
    """Depth of each span; 0 for all where the range holds too many spans to look at."""
    depth = np.zeros(len(start), np.int64)
    track = profile.tracks()[place]
    if track.depths <= 1 or track.level == "module" or not len(start):
        return depth
    near = profile.spans(track, low_ns, high_ns, SPANS_LOOKED_AT)
    if near.num_rows >= SPANS_LOOKED_AT:
        return depth
    known = dict(
        zip(
            zip(near.column("start_ns").to_pylist(), near.column("duration_ns").to_pylist(), strict=True),
            near.column("depth").to_pylist(),
            strict=True,
        )
    )
    pairs = zip(start.tolist(), (end - start).tolist(), strict=True)
    return np.array([known.get(pair, 0) for pair in pairs], np.int64)


def _batch(parts: list[Columns]) -> pa.RecordBatch:
    names = ("tile", "track", "depth", "start", "duration", "count", "busy", "is_bucket")
    none = [np.zeros(0)] * len(names)
    joined = [np.concatenate(values) for values in zip(*parts, strict=True)] if parts else none
    arrays: dict[str, Any] = {
        name: pa.array(values.astype(numpy_dtype(SCHEMA.field(name).type)), SCHEMA.field(name).type)
        for name, values in zip(names, joined, strict=True)
    }
    rows = len(joined[0])
    arrays["name"] = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([""]))
    arrays["row"] = pa.array(np.zeros(rows, np.uint32))
    return pa.RecordBatch.from_arrays([arrays[field.name] for field in SCHEMA], schema=SCHEMA)
