"""Joins small parts: a part a second is what safety needs, few large parts are what reading needs.

The joined part names the windows that it covers, `part-<process>-<first>-<last>.parquet`, and stands in its
place before the small ones are removed. A reader leaves out parts that another one covers, so every row is
seen once, whenever the writer is killed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from neuron_tools.profile.schema import TableSchema
from neuron_tools.profile.store import layout, parts
from neuron_tools.profile.store.joined_file import JoinedFile, ParquetBytes, mapped
from neuron_tools.profile.store.parts import part_rows


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

    Parts that may hold nulls in other columns than the one before them begin another part.

    Raises:
        OSError: The disk is full or the folder cannot be written.
    """
    contents = ((path, ParquetBytes.of(mapped(path))) for path in paths)
    for _, alike in groupby(contents, key=lambda found: found[1].head):
        _join(list(alike))


def _join(found: Sequence[tuple[Path, ParquetBytes]]) -> None:
    first, last = layout.part_range(found[0][0]), layout.part_range(found[-1][0])
    if first is None or last is None or len(found) < 2:
        return
    place = found[0][0].with_name(layout.part_name(first[0], first[1], last[2]))
    joined = JoinedFile(place, found[0][1])
    for _, content in found[1:]:
        joined.append(content)
    joined.close()
    for path, _ in found:
        if path != place:
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
