"""What readers of databases do alike with rows: leave out those without a time, and name what they leave."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.profile.importers.recording import Recording
from neuron_tools.profile.importers.sqlite_file import SqliteFile


def timed_rows(batch: pa.RecordBatch, start: str, table: str, recording: Recording) -> pa.RecordBatch:
    """The rows that have a start; the others are told of under the table's name."""
    is_timed = batch[start].is_valid()
    missing = batch.num_rows - (pc.sum(is_timed).as_py() or 0)
    recording.warn(f"Rows of {table} without a time were left out.", count=missing)
    return batch.filter(is_timed)


def warn_of_unread_tables(
    database: SqliteFile,
    recording: Recording,
    read_tables: Collection[str],
    stamps: Collection[str],
    shown: Callable[[str], str] = str,
) -> None:
    """Names the tables of events that no reader knows.

    Args:
        database: Has the tables.
        recording: Receives the warning.
        read_tables: What is read, or is no event.
        stamps: Columns with times: what makes a table one of events.
        shown: What a table is called; those that are called alike are named once.
    """
    left = {
        shown(table)
        for table, columns in database.columns.items()
        if shown(table) not in read_tables and not columns.isdisjoint(stamps) and database.has_rows(table)
    }
    if left:
        recording.warn(f"Tables that are not read were left out: {', '.join(sorted(left))}.")
