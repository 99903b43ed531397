"""SQL that gives what the timeline shows: for whoever wants to go on from there with a query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuron_explorer.timeline.track_places import columns_of, row_columns, source_of, track_apart
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.timeline.track import Track

IDENTIFYING = (
    "process_idx",
    "pcore_idx",
    "id",
    "start_ts",
    "end_ts",
    "timestamp",
    "queue_name",
    "thread_idx",
)
"""Columns that tell a row apart, in the order in which a query names them."""


def row_query(table: str, values: Mapping[str, Any]) -> str:
    """A query whose answer is the row with these values."""
    known = [name for name in IDENTIFYING if values.get(name) is not None]
    conditions = " AND ".join(f"{name} = {literal(values[name])}" for name in known)
    return f'SELECT * FROM "{table}" WHERE {conditions}' if conditions else ""


def range_query(profile: Profile, track: Track, start_ns: int, end_ns: int) -> str:
    """A query whose answer are the rows of a track that overlap a range; empty where rows have no times."""
    held = columns_of(profile, track.table)
    source = source_of(track)
    columns = None if source is None else row_columns(source, held)
    if columns is None:
        return ""
    conditions = [f"{columns.start} < {end_ns}", f"{columns.end} > {start_ns}"]
    if "process_idx" in held:
        conditions.append(f"coalesce(process_idx, 0) = {track.process_idx}")
    if columns.core != "-1":
        conditions.append(f"{columns.core} = {-1 if track.core_idx is None else track.core_idx}")
    if track.level != "module" and columns.apart != "''":
        conditions.append(f"{columns.apart} = {literal(track_apart(track.id))}")
    return f'SELECT * FROM "{track.table}" WHERE {" AND ".join(conditions)} ORDER BY {columns.start}'


def literal(value: Any) -> str:
    """A value as SQL writes it."""
    return str(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "''") + "'"
