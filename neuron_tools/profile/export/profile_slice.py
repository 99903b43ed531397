"""A stretch of time of a profile as a profile of its own.

Spans that reach beyond the stretch are cut at its edges; their counts (bytes, FLOPs) stay whole. Counters
keep the value that they had when the stretch began. Times start at 0 again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from neuron_tools.errors import UsageError
from neuron_tools.profile.derive import DERIVED_TABLES, derive_tables
from neuron_tools.profile.derive.schema_fields import schema_fields
from neuron_tools.profile.export.report import ExportReport, Progress, RowCounter
from neuron_tools.profile.export.source import ProfileSource, Tables
from neuron_tools.profile.placed_profile import placed_profile, require_place
from neuron_tools.profile.schema import TABLES, TableSchema
from neuron_tools.profile.store import layout
from neuron_tools.profile.writer import ProfileWriter

SPANS: Mapping[str, tuple[str, str]] = {
    "ExecutionInfo": ("execution_start_ts", "execution_end_ts"),
    "Throttle": ("timestamp", "timestamp + duration"),
}
"""Tables whose times are spelled otherwise: SQL for start and end."""
EVENTS = frozenset({"SemaphoreUpdate", "Error"})
"""Tables whose rows are moments, not values that hold until the next."""
PLACES = ("process_idx", "pcore_idx", "device_idx", "hbm_idx", "track_idx", "cpu_id", "instance_id")
INTERVAL_LISTS = (
    "element_count_per_interval",
    "transpose_element_count_per_interval",
    "hbm_transfer_size_per_interval",
)
DEVICE_TABLES = ("Instruction", "DmaPacketAggregated", "DmaPacket")


class SlicedProfile(ProfileSource, Protocol):
    """An opened profile."""

    metadata: Mapping[str, Any]


def export_slice(
    profile: SlicedProfile,
    destination_path: str | Path,
    start_ns: int,
    end_ns: int,
    *,
    progress: Progress | None = None,
    force: bool = False,
) -> ExportReport:
    """Writes what happened in [start_ns, end_ns) of a profile.

    Args:
        profile: The profile.
        destination_path: The profile to make.
        start_ns, end_ns: The stretch, from the profile's start.
        progress: Told (rows read, rows in all) as the export goes.
        force: Whether to replace an existing profile.

    Returns:
        The folder, and the number of rows of each table.

    Raises:
        UsageError: The destination exists and `force` is False, the stretch is empty, or nothing is in it.
        NotAProfileError: Something other than a profile would be replaced.
        ProfileWriteError: The profile cannot be written.
    """
    target = Path(destination_path)
    if not 0 <= start_ns < end_ns:
        raise UsageError(
            f"From {start_ns} ns to {end_ns} ns is no stretch of time: start before the end, from 0 on."
        )
    require_place(target, force=force)
    tables = Tables(profile)
    cut = _Cut(tables, start_ns, end_ns)
    chosen = [
        name for name in tables.names if name in TABLES and name not in DERIVED_TABLES and tables.count(name)
    ]
    if not any(cut.count(name) for name in chosen):
        raise UsageError(f"Nothing happened between {start_ns} ns and {end_ns} ns.")
    counts: dict[str, int] = {}
    rows = RowCounter(progress, sum(tables.count(name) for name in chosen))
    about = {key: value for key, value in profile.metadata.items() if key not in _OWN_KEYS}
    with placed_profile(target, {**about, "slice_ns": [start_ns, end_ns]}, force=force) as writer:
        for name in chosen:
            counts[name] = _write(cut, name, writer)
            rows.advance(tables.count(name))
        _derive(counts, writer)
    return ExportReport((target,), counts)


_OWN_KEYS = frozenset({"format", "format_version", "schema_version", "producer", "complete", "tables"})


def _write(cut: _Cut, name: str, writer: ProfileWriter) -> int:
    count = 0
    for batch in cut.tables.batches(cut.query(name)):
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        _fill_required(columns, name)
        if "time_intervals" in columns:
            _cut_intervals(columns, cut.start_ns, cut.end_ns)
        writer.append(name, columns)
        count += batch.num_rows
    return count


def _fill_required(columns: dict[str, Any], table: str) -> None:
    """Profiles of other tools may lack what the schema asks for: nothing stands there then."""
    schema = TABLES[table]
    for name in schema.required:
        column = columns.get(name)
        if column is not None and column.null_count and not pa.types.is_nested(column.type):
            nothing = {"string": "", "bool": False}.get(schema.by_name[name].type, 0)
            columns[name] = column.fill_null(pa.scalar(nothing).cast(column.type))


def _derive(counts: Mapping[str, int], writer: ProfileWriter) -> None:
    if any(counts.get(name) for name in DEVICE_TABLES):
        derive_tables(writer.directory, writer)
        return
    writer.flush()
    stored = {name for name, _ in layout.stored_tables(writer.directory)}
    writer.replace("SchemaFields", schema_fields(sorted(stored | {"SchemaFields"})))


class _Cut:
    """SQL for the rows of a stretch of time, with times from its start."""

    def __init__(self, tables: Tables, start_ns: int, end_ns: int) -> None:
        self.tables = tables
        self.start_ns = start_ns
        self.end_ns = end_ns

    def count(self, name: str) -> int:
        """Rows with a time that are kept."""
        condition = self._condition(name)
        if condition is None:
            return 0
        return int(self.tables.rows(f'SELECT count(*) FROM "{name}" t WHERE {condition}')[0][0])

    def query(self, name: str) -> str:
        """The rows of a table that are kept."""
        schema = TABLES[name]
        present = self.tables.columns(name)
        columns = [self._column(schema, field.name) for field in schema.fields if field.name in present]
        selected = f'SELECT {", ".join(columns)} FROM "{name}" t'
        condition = self._condition(name)
        if name == "Flow":
            return f"{selected} WHERE {self._end_is_kept('in')} AND {self._end_is_kept('out')}"
        if condition is None:
            return selected
        held = self._held(schema, present)
        return f"{selected} WHERE {condition}" + (f" UNION ALL {held}" if held else "")

    def _span(self, name: str) -> tuple[str, str] | None:
        if name in SPANS:
            return SPANS[name]
        return ("start_ts", "end_ts") if "start_ts" in TABLES[name].by_name else None

    def _condition(self, name: str) -> str | None:
        """Which rows are in the stretch; None for tables without time."""
        first, last = self.start_ns, self.end_ns
        span = self._span(name)
        if span is not None:
            start, end = span
            return f"({start} < {last} AND ({end} > {first} OR ({start} = {end} AND {start} >= {first})))"
        if "timestamp" in TABLES[name].by_name:
            return f"(timestamp >= {first} AND timestamp < {last})"
        return None

    def _held(self, schema: TableSchema, present: Mapping[str, str]) -> str:
        """The last sample of each counter before the stretch, moved to its start; empty if there is none."""
        if schema.name in EVENTS or schema.name in SPANS or "timestamp" not in schema.by_name:
            return ""
        place = ", ".join(name for name in PLACES if name in present) or "1"
        columns = ", ".join(
            "0 AS timestamp" if field.name == "timestamp" else f'"{field.name}"'
            for field in schema.fields
            if field.name in present
        )
        return (
            f'SELECT {columns} FROM (SELECT * FROM "{schema.name}" WHERE timestamp < {self.start_ns}'
            f" QUALIFY row_number() OVER (PARTITION BY {place} ORDER BY timestamp DESC) = 1)"
        )

    def _column(self, schema: TableSchema, name: str) -> str:
        """A column, cut to the stretch and counted from its start."""
        first, last = self.start_ns, self.end_ns
        span = self._span(schema.name)
        if span is not None and name in (span[0], span[1]):
            return f'least(greatest("{name}", {first}), {last}) - {first} AS "{name}"'
        if span is not None and name in ("duration_ns", "duration"):
            return f'least({span[1]}, {last}) - greatest({span[0]}, {first}) AS "{name}"'
        if name == "timestamp" or name.endswith("_ts"):
            kind = schema.by_name[name].type
            return f'"{name}"' if kind != "int64" else f'greatest("{name}" - {first}, 0) AS "{name}"'
        if name == "start_unix_ns":
            return f'"{name}" + {first} AS "{name}"'
        if name == "clock_offset_ns":
            return f'"{name}" - {first} AS "{name}"'
        if name == "wait_cause_id":
            return f'CASE WHEN {self._cause_is_kept()} THEN "{name}" END AS "{name}"'
        return f'"{name}"'

    def _end_is_kept(self, end: str) -> str:
        """Whether the row that a dependency names is kept."""
        tables = [row[0] for row in self.tables.rows(f"SELECT DISTINCT {end}_table FROM Flow")]
        kept = [
            f"(t.{end}_table = '{name}' AND t.{end}_id IN"
            f' (SELECT id FROM "{name}" WHERE {self._condition(name)}))'
            for name in tables
            if name in TABLES and self._condition(name) is not None and self.tables.has(name, "id")
        ]
        return f"({' OR '.join(kept)})" if kept else "FALSE"

    def _cause_is_kept(self) -> str:
        kept = [
            f'wait_cause_id IN (SELECT id FROM "{name}" WHERE {self._condition(name)})'
            for name in ("Instruction", "DmaPacketAggregated")
            if self.tables.count(name)
        ]
        return " OR ".join(kept) or "FALSE"


def _cut_intervals(columns: dict[str, Any], start_ns: int, end_ns: int) -> None:
    """Cuts the lists of active intervals, and what is told for each of them, to the stretch."""
    texts, kept_of = [], []
    for text in columns["time_intervals"].to_pylist():
        pairs = json.loads(text) if text else []
        kept = [number for number, (first, last) in enumerate(pairs) if first < end_ns and last > start_ns]
        cut = [[max(pairs[n][0], start_ns) - start_ns, min(pairs[n][1], end_ns) - start_ns] for n in kept]
        texts.append(json.dumps(cut, separators=(",", ":")))
        kept_of.append((kept, len(pairs)))
    columns["time_intervals"] = pa.array(texts, pa.string())
    for name in INTERVAL_LISTS:
        if name in columns:
            lists = columns[name].to_pylist()
            columns[name] = pa.array(
                [
                    [values[n] for n in kept] if values is not None and len(values) == count else values
                    for values, (kept, count) in zip(lists, kept_of)
                ],
                pa.list_(pa.int64()),
            )
