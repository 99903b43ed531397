"""Staging of TraceSpan rows: the columns in their order, absent ones null."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.recording import LANE, Recording

TEXTS = pa.dictionary(pa.int32(), pa.string())
_TYPES = {
    "id": pa.int64(),
    LANE: pa.int32(),
    "start_ts": pa.int64(),
    "end_ts": pa.int64(),
    "name": TEXTS,
    "category": TEXTS,
    "correlation_id": pa.int64(),
    "layer": TEXTS,
    "source_file": TEXTS,
    "source_line": pa.int32(),
    "arguments_json": pa.string(),
}


def stage_spans(recording: Recording, spans: pa.Table) -> None:
    """Stages spans; negative durations become 0 and are told of."""
    start, end = spans["start_ts"].to_numpy(), spans["end_ts"].to_numpy()
    negative = int(np.count_nonzero(end < start))
    recording.warn("Negative durations were set to 0.", count=negative)
    if negative:
        place = spans.schema.get_field_index("end_ts")
        spans = spans.set_column(place, "end_ts", pa.array(np.maximum(start, end)))
    columns = {name: _column(spans, name, kind) for name, kind in _TYPES.items()}
    recording.append("TraceSpan", columns)


def stage_flows(recording: Recording, source: Ints, target: Ints) -> None:
    """Stages Flow rows from the spans with some ids to others, one row a pair."""
    tables = pa.array(["TraceSpan"]).dictionary_encode().take(pa.array(np.zeros(len(source), np.int32)))
    columns = {"in_id": pa.array(source), "out_id": pa.array(target)}
    recording.append("Flow", {**columns, "in_table": tables, "out_table": tables})


def _column(spans: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    if name not in spans.column_names:
        return pa.nulls(spans.num_rows, kind)
    column = spans[name]
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    joined = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return joined if joined.type == kind else joined.cast(kind)
