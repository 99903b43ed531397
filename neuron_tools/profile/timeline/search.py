"""Finds spans by what they are called, by any column of theirs, or by their source lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.timeline.dtypes import columns
from neuron_tools.profile.timeline.index import TimelineIndex
from neuron_tools.profile.timeline.labels import Labels
from neuron_tools.profile.timeline.scan import Names, TrackRows, batches, split
from neuron_tools.profile.timeline.sources import SPAN_SOURCES, SpanSource

FOUND_SCHEMA = columns("track int32, depth int32, start_ns int64, duration_ns int64, name string, row int64")


STACK = "stack_frame_ids"
_AGAIN = frozenset(source.again for source in SPAN_SOURCES if source.again)


def search_names(index: TimelineIndex, text: str, start_ns: int, end_ns: int, limit: int) -> pa.Table:
    """The first spans of a range whose names contain a text, whatever the case.

    Looks at one small number a span: a second for some hundred million.
    """
    wanted = pc.match_substring(index.names, text, ignore_case=True).to_numpy(zero_copy_only=False)
    found: list[pa.Table] = []
    if not wanted.any():
        return FOUND_SCHEMA.empty_table()
    for place, track in enumerate(index.tracks):
        if _AGAIN.intersection(track.id.split("/")[1:3]):
            continue  # its spans are found on another track
        for lane in index.lanes(place):
            spans = lane.named(wanted, start_ns, end_ns, limit)
            if len(spans.row):
                depth = np.full(len(spans.row), lane.depth)
                columns = (np.full(len(depth), place), depth, spans.start_ns, spans.duration_ns)
                found.append(_table(*columns, index.names.take(pa.array(spans.name)), spans.row))
    return _first(found, limit)


@frozen
class Condition:
    """Which rows to find.

    Attributes:
        columns: Columns that it reads; tables without them all are left out.
        further: Columns that it reads where a table has them.
        holds: Mask of a batch's rows; None where none can match.
    """

    columns: tuple[str, ...]
    holds: Callable[[pa.RecordBatch], pa.Array | None]
    further: tuple[str, ...] = ()


def column_is(column: str, value: str) -> Condition:
    """Rows of which a column equals a value, given as text; numbers are compared as numbers."""
    return Condition((column,), lambda batch: _equal(batch.column(column), value))


def at_lines(file: str, first: int, last: int, stacks: frozenset[str] = frozenset()) -> Condition:
    """Rows that belong to the lines `first` to `last` of a source file.

    Args:
        stacks: Innermost frames of stacks that these lines are on: their rows belong to the lines too.
    """
    through = pa.array(sorted(stacks), pa.string())

    def holds(batch: pa.RecordBatch) -> pa.Array | None:
        exact, below = at_exactly(batch), _among(batch, through)
        if exact is None or below is None:
            return below if exact is None else exact
        return pc.or_(exact, below)

    def at_exactly(batch: pa.RecordBatch) -> pa.Array | None:
        in_file = _equal(batch.column("source_file"), file)
        line = batch.column("source_line")
        if in_file is None:
            return None
        inside = pc.and_(pc.greater_equal(line, first), pc.less_equal(line, last)).fill_null(False)
        return pc.and_(in_file, inside)

    return Condition(("source_file", "source_line"), holds, (STACK,))


def _among(batch: pa.RecordBatch, stacks: pa.Array) -> pa.Array | None:
    """Rows whose stack is one of some; None where no row can have one."""
    if STACK not in batch.schema.names or not len(stacks):
        return None
    column = batch.column(STACK)
    if not pa.types.is_dictionary(column.type):
        return pc.is_in(column, stacks)
    known = pc.is_in(column.dictionary.cast(pa.string()), stacks)
    return pc.take(known, column.indices).fill_null(False)


def search_rows(
    index: TimelineIndex,
    parts: Mapping[str, Sequence[Path]],
    condition: Condition,
    range_ns: tuple[int, int],
    limit: int,
) -> pa.Table:
    """The first spans of a range that meet a condition; reads its columns of every table."""
    places = {track.id: place for place, track in enumerate(index.tracks)}
    labels, names, found = Labels(parts), Names(), []
    for source in SPAN_SOURCES:
        if source.again or not set(condition.columns) <= set(TABLES[source.table].by_name):
            continue
        for rows in _matching(source, parts.get(source.table, ()), condition, names, range_ns):
            place = places.get(labels.describe(source, rows.key).id)
            if place is not None:
                text = pa.array([names.texts[code] for code in rows.name.tolist()], pa.string())
                track = np.full(len(rows.row), place)
                found.append(
                    _table(track, np.full(len(track), -1), rows.start_ns, rows.duration_ns, text, rows.row)
                )
            if sum(map(len, found)) >= 4 * limit:
                found = [_first(found, limit)]
    return _first(found, limit)


def _matching(
    source: SpanSource,
    paths: Sequence[Path],
    condition: Condition,
    names: Names,
    range_ns: tuple[int, int],
) -> Iterator[TrackRows]:
    fields = TABLES[source.table].by_name
    further = [name for name in condition.further if name in fields]
    columns = tuple(dict.fromkeys((*source.columns, *condition.columns, *further)))
    texts = [name for name in columns if name in fields and fields[name].type == "string"]
    for first_row, batch in batches(paths, columns, texts):
        if not set(condition.columns) <= set(batch.schema.names):
            continue
        mask = condition.holds(batch)
        if mask is not None and pc.any(mask).as_py():
            chosen = mask.to_numpy(zero_copy_only=False).nonzero()[0]
            for rows in split(source, first_row + chosen, batch.take(pa.array(chosen)), names):
                inside = (rows.start_ns < range_ns[1]) & (rows.start_ns + rows.duration_ns >= range_ns[0])
                yield rows if inside.all() else rows.take(inside)


def _equal(column: pa.Array, value: str) -> pa.Array | None:
    """Where a column equals a value; None where it cannot."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_nested(kind):
        return None
    try:
        wanted = pa.scalar(value).cast(kind)
    except pa.ArrowInvalid:
        return None
    if not pa.types.is_dictionary(column.type):
        return pc.equal(column, wanted).fill_null(False)
    place = pc.index(column.dictionary, wanted).as_py()
    return None if place < 0 else pc.equal(column.indices, place).fill_null(False)


def _table(
    track: npt.NDArray[np.int64],
    depth: npt.NDArray[np.int64],
    start_ns: Ints,
    duration_ns: Ints,
    name: pa.Array,
    row: Ints,
) -> pa.Table:
    columns = [pa.array(values) for values in (track, depth, start_ns, duration_ns)]
    return pa.table([*columns, name, pa.array(row)], names=FOUND_SCHEMA.names).cast(FOUND_SCHEMA)


def _first(found: Sequence[pa.Table], limit: int) -> pa.Table:
    if not found:
        return FOUND_SCHEMA.empty_table()
    joined = pa.concat_tables(found)
    return joined.sort_by([("start_ns", "ascending"), ("track", "ascending"), ("row", "ascending")])[:limit]
