"""Joins small parts: a part a second is what safety needs, few large parts are what reading needs.

The joined part names the windows that it covers, `part-<process>-<first>-<last>.parquet`, and stands in its
place before the small ones are removed. A reader leaves out parts that another one covers, so every row is
seen once, whenever the writer is killed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from neuron_tools.profile import layout, parts
from neuron_tools.profile.parts import OpenPart, part_rows
from neuron_tools.profile.schema import TableSchema, arrow_schema


def compact(directory: Path, table: TableSchema) -> None:
    """Join neighbouring small parts of a table, up to the size of a full one.

    Parts of an eighth of that size, which a fast writer makes within a second, are large enough.

    Raises:
        OSError: The disk is full or the folder cannot be written.
    """
    full = parts.WINDOWS_PER_PART * parts.window_rows(table)
    for group in _groups(layout.part_files(directory, table.name), full):
        join_parts(group, table)


def join_parts(paths: Sequence[Path], table: TableSchema) -> None:
    """Make one part of several neighbouring ones of one process; each row group stays as it is.

    Raises:
        OSError: The disk is full or the folder cannot be written.
        pyarrow.ArrowException: A part is damaged; all stay as they are.
    """
    first, last = layout.part_range(paths[0]), layout.part_range(paths[-1])
    if first is None or last is None:
        return
    joined = paths[0].with_name(layout.part_name(first[0], first[1], last[2]))
    part: OpenPart | None = None
    nullable = _nullable(paths)
    for rows in _windows(paths, table):
        part = part or OpenPart(joined, table, rows, nullable)
        part.write(rows)
    if part is not None:
        part.close()
        for path in paths:
            if path != joined:
                path.unlink(missing_ok=True)


def _groups(paths: Sequence[Path], full: int) -> Iterator[list[Path]]:
    """Runs of at least two neighbouring small parts of one process with at most `full` rows together."""
    group: list[Path] = []
    held, process = 0, -1
    for path in paths:
        place, rows = layout.part_range(path), part_rows(path)
        is_small = place is not None and rows is not None and rows < full // 8
        if group and not (is_small and place and place[0] == process and held + (rows or 0) <= full):
            if len(group) > 1:
                yield group
            group, held = [], 0
        if is_small and place:
            group.append(path)
            held, process = held + (rows or 0), place[0]
    if len(group) > 1:
        yield group


def _nullable(paths: Sequence[Path]) -> set[str]:
    """Columns that may be null in any of the parts."""
    schemas = [pq.read_schema(path) for path in paths]
    return {field.name for schema in schemas for field in schema if field.nullable}


def _windows(paths: Sequence[Path], table: TableSchema) -> Iterator[pa.Table]:
    """The row groups of parts, as the writer had them."""
    schema = arrow_schema(table.name)
    texts = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    for path in paths:
        with pq.ParquetFile(path, read_dictionary=texts) as part:
            for group in range(part.num_row_groups):
                rows = part.read_row_group(group, use_threads=False)
                yield rows.unify_dictionaries().combine_chunks().cast(schema)
