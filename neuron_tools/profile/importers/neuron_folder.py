"""Folders of tables: what Neuron Explorer writes as Parquet, and our own profiles, to be merged.

Tables and columns that the schema does not know are left out, and the profile says which (`told_schema`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neuron_tools.profile.derive import DERIVED_TABLES
from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.recording import Clock, Process, Recording
from neuron_tools.profile.schema import TABLES, Field, TableSchema, plain_types
from neuron_tools.profile.store import layout
from neuron_tools.profile.store.catalog import read_catalog
from neuron_tools.profile.store.told_schema import read_told_schema, renamed_columns

NAME = "Neuron Explorer Parquet"
OWN_NAME = "Neuron Tools profile"
BATCH_ROWS = 1 << 16
LARGEST_PROCESS = 1 << 20
LARGEST_TIME = 1 << 61  # 73 years: durations, and sums of some, stay within 64 bits


def is_folder_of_tables(path: Path) -> bool:
    """Whether a path is a folder of Parquet tables with published names."""
    return path.is_dir() and any(True for _ in layout.stored_tables(path))


def read(path: Path, recording: Recording, *, with_derived: bool) -> None:
    """Stages all tables of a folder.

    Args:
        path: The folder.
        recording: Receives the rows; its format becomes ours where the folder is a profile of ours.
        with_derived: Whether to take over tables that can be computed from the others.

    Raises:
        TraceError: The folder has no whole table.
    """
    is_capture, renamed = False, renamed_columns(read_told_schema(path).version)
    if (path / layout.MANIFEST_NAME).is_file():
        recording.format_name = OWN_NAME
        is_capture = "host_clock" in layout.read_manifest(path)
    catalog = read_catalog(path)
    recording.warn_all(catalog.missing)
    has_device_rows = "Instruction" in catalog.tables or "DmaPacketAggregated" in catalog.tables
    for name, stored in catalog.tables.items():
        if name == "SchemaFields":
            continue
        is_taken = with_derived and set(TABLES[name].required) <= stored.columns
        if name in DERIVED_TABLES and has_device_rows and not is_taken:
            continue  # computed again: the plain export lacks the columns that we add to it
        names = {own: renamed.get(name, {}).get(own, own) for own in stored.columns}
        for part in stored.paths:
            for columns in _batches(TABLES[name], names, part, recording):
                recording.append(name, columns)
    if not recording.row_counts:
        raise TraceError(f"{path} has no whole Parquet table with a published name.")
    _finish(recording, is_capture=is_capture)


def _batches(
    table: TableSchema, names: Mapping[str, str], part: Path, recording: Recording
) -> Iterator[dict[str, Any]]:
    """A part's rows, columns in the schema's types; a part that cannot be read further ends early.

    Args:
        names: Our name of each column that is read.
    """
    try:
        with pq.ParquetFile(part) as file:
            known = [name for name in file.schema_arrow.names if names.get(name) in table.by_name]
            for batch in file.iter_batches(BATCH_ROWS, columns=known):
                ours = [names[name] for name in batch.schema.names]
                yield from _typed(table, batch.rename_columns(ours), recording)
    except (OSError, pa.ArrowException) as error:
        recording.warn(f"{table.name}: {part.name} cannot be read further ({str(error).splitlines()[0]}).")


def _typed(table: TableSchema, batch: pa.RecordBatch, recording: Recording) -> Iterator[dict[str, Any]]:
    columns: dict[str, Any] = {}
    for name, column in zip(batch.schema.names, batch.columns):
        field = table.by_name[name]
        try:
            columns[name] = _bounded(field, column.cast(plain_types()[field.type]), recording)
        except (pa.ArrowException, pa.ArrowNotImplementedError):
            recording.warn(f"{table.name}.{name} has values that are no {field.type}; it was left out.")
    rows = np.ones(batch.num_rows, np.bool_)
    for name in table.required:
        field = table.by_name[name]
        if name not in columns:
            columns[name] = _default(field, batch.num_rows)
        elif columns[name].null_count:
            rows &= columns[name].is_valid().to_numpy(zero_copy_only=False)
    lost = batch.num_rows - int(rows.sum())
    recording.warn(f"Rows of {table.name} without a required value were left out.", count=lost)
    if lost:
        columns = {name: column.filter(pa.array(rows)) for name, column in columns.items()}
    if rows.any():
        yield columns


def _bounded(field: Field, column: pa.Array, recording: Recording) -> pa.Array:
    """Times within bounds that sums of them do not leave."""
    is_time = field.type == "int64" and field.name.endswith(("_ts", "timestamp"))
    if not is_time or not len(column):
        return column
    extremes = pc.min_max(column).as_py()
    if (extremes["min"] or 0) >= -LARGEST_TIME and (extremes["max"] or 0) <= LARGEST_TIME:
        return column
    recording.warn(f"Times of {field.name} that are no times of any run were cut.")
    low = pc.max_element_wise(column, pa.scalar(-LARGEST_TIME), skip_nulls=False)
    return pc.min_element_wise(low, pa.scalar(LARGEST_TIME), skip_nulls=False)


def _default(field: Field, rows: int) -> pa.Array:
    values = {"string": "", "bool": False, "float64": 0.0, "list<int64>": [], "list<string>": []}
    return pa.array([values.get(field.type, 0)] * rows, plain_types()[field.type])


def _finish(recording: Recording, *, is_capture: bool) -> None:
    """Tells the clock, what happened on all ranks at once, and how many processes there are.

    A capture of ours says of each process when its own clock began, and where in the profile that is.
    """
    starts: list[int] = []
    hosts: set[str] = set()
    for batch in recording.staged("ProcessInfo"):
        if "start_unix_ns" in batch.schema.names:
            places = [0] * batch.num_rows
            if is_capture and "clock_offset_ns" in batch.schema.names:
                places = batch.column("clock_offset_ns").to_pylist()
            begins = batch.column("start_unix_ns").to_pylist()
            starts += [start - place for start, place in zip(begins, places) if start and place is not None]
        if "host" in batch.schema.names:
            hosts |= {host for host in batch.column("host").to_pylist() if host}
    recording.clock = Clock(min(starts, default=None), hosts.pop() if len(hosts) == 1 else None)
    recording.collectives = _collective_ends(recording)
    if not recording.row_counts["ProcessInfo"]:
        recording.add_process(Process(name=recording.source.stem))
    recording.process_count = 1 + min(_last_process(recording), LARGEST_PROCESS)
    if 0 <= (recording.first_ns or 0) < 1 << 60:
        recording.first_ns = 0


def _collective_ends(recording: Recording) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
    """Ends of the collectives of each group of ranks, by their number in it."""
    ends: dict[str, dict[int, int]] = {}
    for batch in recording.staged("CcOp"):
        if "group_name" not in batch.schema.names:
            continue
        columns = (batch.column(name).to_pylist() for name in ("group_name", "op_id", "end_ts"))
        for group, number, end_ns in zip(*columns):
            if group is not None:
                ends.setdefault(group, {}).setdefault(number, end_ns)
    return {
        group: np.array([by_number[number] for number in sorted(by_number)], np.int64)
        for group, by_number in ends.items()
    }


def _last_process(recording: Recording) -> int:
    last = 0
    for table in list(recording.row_counts):
        for batch in recording.staged(table):
            if "process_idx" in batch.schema.names:
                highest = pc.max(batch.column("process_idx")).as_py()
                last = max(last, highest or 0)
    return last
