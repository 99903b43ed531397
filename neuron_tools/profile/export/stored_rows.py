"""Rows of the timeline straight from a profile's parts, where those stand in order: no query sorts them anew.

Gives the same columns as `timeline_queries.span_query`, in batches, each ordered by track and time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.export.source import Tables
from neuron_tools.profile.export.timeline_queries import flow_query, has_flows
from neuron_tools.profile.export.timeline_sources import END, START, Place, SpanSource
from neuron_tools.profile.timeline.scan import EMPTY_TEXT, changes, integers, track_order

MOST_FLOWS = 1 << 23
_OTHERS = ("layer", "is_backward", "source_file", "source_line", "category", "arguments_json")


@runtime_checkable
class StoredSource(Protocol):
    """A profile whose tables can be read as they are stored."""

    def stands_in_order(self, table: str) -> bool:
        """Whether the rows of each track of a table are stored in order of start."""
        ...

    def stored_batches(self, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of a table, texts as dictionaries, in batches."""
        ...


def can_be_read_as_stored(source: SpanSource, profile: object, tables: Tables, *, flows: bool) -> bool:
    """Whether `stored_rows` gives a source's rows: plain columns, in order, flows that fit into memory."""
    is_plain = source.start == START and source.end == END and source.condition == "TRUE"
    if source.nested or source.place is not Place.CORE or not is_plain or source.track.suffix:
        return False
    if not isinstance(profile, StoredSource) or not profile.stands_in_order(source.table):
        return False
    return not (flows and has_flows(tables)) or tables.count("Flow") <= MOST_FLOWS


def stored_rows(
    source: SpanSource, profile: StoredSource, tables: Tables, *, flows: bool
) -> Iterator[pa.RecordBatch]:
    """A source's rows by track and time within each batch, and by time of each track across batches."""
    columns = tables.columns(source.table)
    wanted = (
        "process_idx", source.index, "start_ts", "end_ts", *source.track.needed(), *source.name.needed(),
        *_OTHERS, *source.arguments,
    )  # fmt: skip
    names = [name for name in dict.fromkeys(wanted) if name in columns]
    outgoing, incoming = (_Edges.of(source, tables, end, flows) for end in ("in", "out"))
    for batch in profile.stored_batches(source.table, names):
        rows = _ordered(source, batch)
        if rows.num_rows:
            ids = integers(rows, "id")
            yield _renamed(source, rows, outgoing.lists(ids), incoming.lists(ids))


@frozen
class _Edges:
    """One end of all flows of a table: ids of rows, ascending, and the flows' numbers."""

    ids: Ints
    numbers: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, source: SpanSource, tables: Tables, end: str, wanted: bool) -> _Edges:
        query = flow_query(source.table, tables, end) if wanted else None
        found = list(tables.batches(query)) if query else []
        if not found:
            return cls(np.zeros(0, np.int64), np.zeros(0, np.uint64))
        edges = pa.Table.from_batches(found)
        return cls(edges.column("id").to_numpy(), edges.column("number").to_numpy())

    def lists(self, ids: Ints) -> pa.Array:
        """The flows of rows."""
        if not len(self.ids):
            return pa.nulls(len(ids), pa.list_(pa.uint64()))
        low, high = (np.searchsorted(self.ids, ids, side=side) for side in ("left", "right"))
        offsets = np.concatenate([[0], np.cumsum(high - low)])
        places = np.repeat(low - offsets[:-1], high - low) + np.arange(offsets[-1])
        return pa.ListArray.from_arrays(offsets.astype(np.int32), pa.array(self.numbers[places]))


def _ordered(source: SpanSource, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of a batch with both times, by track and time; with the columns `track` and `start_ns`."""
    for name in ("start_ts", "end_ts"):
        if batch.column(name).null_count:
            batch = batch.filter(batch.column(name).is_valid())
    track = source.track.of(batch)
    keys = [integers(batch, "process_idx"), integers(batch, source.index), track.indices.to_numpy()]
    start = integers(batch, "start_ts")
    batch = batch.append_column("track", track).append_column("start_ns", pa.array(start))
    order = track_order(keys, start, changes(keys)) if len(start) else None
    return batch if order is None else batch.take(pa.array(order))


def _renamed(
    source: SpanSource, rows: pa.RecordBatch, outgoing: pa.Array, incoming: pa.Array
) -> pa.RecordBatch:
    """The columns that the writer of timelines takes."""
    start = integers(rows, "start_ns")
    end = np.maximum(integers(rows, "end_ts"), start)
    columns: dict[str, Any] = {
        "process_idx": integers(rows, "process_idx"),
        "place_idx": integers(rows, source.index),
        "track": rows.column("track"),
        "start_ns": start,
        "end_ns": end,
        "name": source.name.of(rows),
        **{name: _column(rows, name) for name in _OTHERS},
        "flow_out": outgoing,
        "flow_in": incoming,
    }
    for column in source.arguments:
        if column in rows.schema.names:
            columns[f"arg_{column}"] = _argument(rows.column(column), keeps_zero=column == "id")
    return pa.RecordBatch.from_pydict(columns)


def _column(rows: pa.RecordBatch, name: str) -> pa.Array:
    return rows.column(name) if name in rows.schema.names else pa.nulls(rows.num_rows)


def _argument(column: pa.Array, *, keeps_zero: bool) -> pa.Array:
    """An argument's values; null where they say nothing, as an empty text and 0 do."""
    if pa.types.is_dictionary(column.type):
        nothing = pc.index(column.dictionary, EMPTY_TEXT).as_py()
        if nothing < 0:
            return column
        codes = pc.if_else(pc.equal(column.indices, nothing), pa.scalar(None, pa.int32()), column.indices)
        return pa.DictionaryArray.from_arrays(codes, column.dictionary)
    if pa.types.is_nested(column.type):
        return column.cast(pa.string()).dictionary_encode()
    kind = pa.float64() if pa.types.is_floating(column.type) else pa.int64()
    column = column.cast(kind, safe=False)  # what int64 does not hold was no number of ours
    filled = column.fill_null(0) if column.null_count else column
    values = filled.to_numpy(zero_copy_only=False)
    absent = values == 0
    if keeps_zero:
        absent = ~column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
    if absent is None or not absent.any():
        return pa.array(values)
    return pa.nulls(len(values), kind) if absent.all() else pa.array(values, mask=absent)
