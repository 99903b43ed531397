"""Writes a profile as it is captured or imported: in bounded memory, readable at any moment.

Rows of a table are gathered into windows of a fixed number of rows. A full window is sorted and becomes one
row group of a Parquet part. `flush` closes the open part and writes the window that is still filling as
a part of its own, under the name that the finished window will later replace: at any time the files of a
table hold every flushed row exactly once, and the rows' order does not depend on when `flush` was called.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from neuron_tools.errors import NeuronToolsError, UsageError
from neuron_tools.profile.schema import TABLES, table_schema
from neuron_tools.profile.store import layout
from neuron_tools.profile.store.catalog import read_catalog
from neuron_tools.profile.store.columns import ColumnError, Columns, to_arrow
from neuron_tools.profile.store.compaction import compact
from neuron_tools.profile.store.parts import TableParts, part_rows
from neuron_tools.profile.store.stored_catalog import store_catalog
from neuron_tools.profile.store.window_pool import WindowPool
from neuron_tools.profile.timeline.view import INDEX_FOLDER, open_index
from neuron_tools.version import installed_version

__all__ = ["ColumnError", "ProfileWriteError", "ProfileWriter"]

FLUSH_INTERVAL_S = 1.0
MOST_OF_TIME = 0.2
"""Part of the time in which flushing is done by itself; it takes long where much else runs on the machine."""


class ProfileWriteError(NeuronToolsError):
    """The profile cannot be written (disk full, no permission); what was flushed before stays valid."""


class ProfileWriter:
    """Appends rows to the tables of one profile directory.

    Several processes may write into one directory, each with its own `process_idx`: one makes it, the
    others `join` it. Only the maker closes it as complete.

    Args:
        directory: The profile, `NAME.nprof`.
        metadata: What `profile.json` says beside the format: command, target, clock and the like.
        overwrite: Write into a directory that exists and holds a profile: its tables are removed first.
        process_idx: Distinguishes this writer's parts from those of others.

    Raises:
        UsageError: The directory exists.
        ProfileWriteError: It cannot be made.

    Example:
        >>> with ProfileWriter(Path("run.nprof"), {"target": "trn2"}) as writer:
        ...     writer.append("Warning", {"message": ["hot"], "category": ["thermal"]})
    """

    def __init__(
        self, directory: Path, metadata: Mapping[str, Any], overwrite: bool = False, *, process_idx: int = 0
    ) -> None:
        self.directory = Path(directory)
        self._process_idx = process_idx
        self._pool = WindowPool()
        self._tables: dict[str, TableParts] = {}
        self._manifest = layout.new_manifest(metadata, producer=producer())
        self._flushed_at, self._flush_took_s = time.monotonic(), 0.0
        self._closed = False
        self._create(overwrite)

    @classmethod
    def join(cls, directory: Path, process_idx: int) -> ProfileWriter:
        """A further writer into a profile that exists.

        Raises:
            NotAProfileError: There is no profile there.
        """
        writer = cls.__new__(cls)
        writer.directory = Path(directory)
        writer._process_idx = process_idx
        writer._pool = WindowPool()
        writer._tables = {}
        writer._manifest = layout.read_manifest(writer.directory)
        writer._flushed_at, writer._flush_took_s = time.monotonic(), 0.0
        writer._closed = False
        return writer

    def __enter__(self) -> ProfileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._closed:
            self.close(complete=kind is None)

    def append(self, table: str, columns: Columns) -> None:
        """Add rows to a table.

        Absent optional columns become null. Rows become readable at the next `flush`, which happens by
        itself when it is due (`flush_if_due`).

        Args:
            table: Name of a table of the schema.
            columns: An Arrow table, or arrays, lists or Arrow arrays of equal length by column name.

        Raises:
            UnknownTableError: No such table.
            ColumnError: A column is unknown, missing, null, or of the wrong type or length.
            ProfileWriteError: The disk is full or the directory cannot be written.
        """
        rows = to_arrow(table_schema(table), columns)
        if not rows.num_rows:
            return
        with _writing(self.directory):
            self._parts(table).append(rows)
        self.flush_if_due(FLUSH_INTERVAL_S)

    def flush_if_due(self, interval_s: float) -> None:
        """Flush if the last time was some time ago, and longer where flushing takes long.

        Raises:
            ProfileWriteError: As `flush`.
        """
        pause_s = max(interval_s, self._flush_took_s * (1 / MOST_OF_TIME - 1))
        if time.monotonic() - self._flushed_at >= pause_s:
            self.flush()

    def flush(self) -> None:
        """Make all rows appended so far readable.

        Raises:
            ProfileWriteError: The disk is full or the directory cannot be written.
        """
        started = time.monotonic()
        with _writing(self.directory):
            for parts in self._tables.values():
                parts.flush()
            self._pool.drain()
        self._flushed_at = time.monotonic()
        self._flush_took_s = self._flushed_at - started

    def replace(self, table: str, columns: Columns) -> None:
        """Put these rows in the place of all that the table holds, from whichever writer.

        Raises:
            UnknownTableError, ColumnError, ProfileWriteError: As `append`.
        """
        self.replace_in_blocks(table, [to_arrow(table_schema(table), columns)])

    def replace_in_blocks(self, table: str, blocks: Iterable[Columns]) -> None:
        """As `replace`, for rows that do not fit into memory together: they are read as they are written.

        Raises:
            UnknownTableError, ColumnError, ProfileWriteError: As `append`.
        """
        schema = table_schema(table)
        with _writing(self.directory):
            self._pool.drain()
            self._tables.pop(table, None)
            for path in layout.part_files(self.directory, table):
                path.unlink()
        for rows in (to_arrow(schema, columns) for columns in blocks):
            if rows.num_rows:
                with _writing(self.directory):
                    self._parts(table).append(rows)
        if table in self._tables:
            with _writing(self.directory):
                self._parts(table).flush()
                self._pool.drain()

    def close(self, complete: bool, **extra: Any) -> None:
        """Write what is left and bring `profile.json` up to date.

        A complete profile gets its small parts joined and its timeline index.

        Args:
            complete: Whether the profile holds all that was to be in it.
            extra: Further entries of `profile.json`, such as `exit_status`.

        Raises:
            ProfileWriteError: The disk is full or the directory cannot be written.
        """
        self._closed = True
        try:
            self.flush()
        finally:
            self._pool.close()
        if complete:
            self._finish()
        self._manifest.update(extra)
        self._manifest["complete"] = complete
        self._manifest["tables"] = stored_table_sizes(self.directory)
        with _writing(self.directory):
            layout.write_manifest(self.directory, self._manifest)

    def _finish(self) -> None:
        with _writing(self.directory):
            for table, _ in layout.stored_tables(self.directory):
                compact(self.directory, TABLES[table])
            catalog = read_catalog(self.directory)
            open_index(self.directory, {name: stored.paths for name, stored in catalog.tables.items()})
            store_catalog(catalog)

    def _create(self, overwrite: bool) -> None:
        with _writing(self.directory):
            try:
                self.directory.mkdir(parents=True)
            except FileExistsError:
                if not overwrite:
                    raise UsageError(
                        f"{self.directory} exists: choose another folder with -o, or remove it first."
                    ) from None
                self._clear()
            layout.write_manifest(self.directory, self._manifest)

    def _clear(self) -> None:
        """Remove the tables of the profile that is overwritten; nothing else is touched."""
        if any(self.directory.iterdir()):
            layout.read_manifest(self.directory)
        for table in TABLES:
            for path in layout.part_files(self.directory, table):
                path.unlink()
        for folder in (self.directory / INDEX_FOLDER, *self.directory.glob(f"{layout.SPILL_PREFIX}*")):
            shutil.rmtree(folder, ignore_errors=True)

    def _parts(self, table: str) -> TableParts:
        parts = self._tables.get(table)
        if parts is None:
            first = _next_part(self.directory, table, self._process_idx)
            parts = TableParts(
                self.directory / table, table_schema(table), self._process_idx, self._pool, first
            )
            self._tables[table] = parts
        return parts


def producer() -> str:
    """Name and version of what writes profiles here."""
    return f"neuron-tools {installed_version()}"


def stored_table_sizes(directory: Path) -> dict[str, dict[str, int]]:
    """Rows, bytes and parts of each table that has any."""
    sizes = {}
    for table, paths in layout.stored_tables(directory):
        rows = [part_rows(path) for path in paths]
        sizes[table] = {
            "rows": sum(count for count in rows if count is not None),
            "bytes": sum(path.stat().st_size for path in paths),
            "parts": len(paths),
        }
    return sizes


def _next_part(directory: Path, table: str, process_idx: int) -> int:
    """Number after the last part that this process has written to the table (when it joins again)."""
    written = [layout.part_range(path) for path in (directory / table).glob(f"*{layout.PART_SUFFIX}")]
    return max((place[2] for place in written if place and place[0] == process_idx), default=-1) + 1


@contextmanager
def _writing(directory: Path) -> Iterator[None]:
    """Turn a failure to write into one sentence for the user."""
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        raise ProfileWriteError(
            f"The profile {directory} cannot be written ({reason_of(error)}). What was written until now can "
            "be opened; free space or choose another folder."
        ) from error


def reason_of(error: BaseException) -> str:
    """Why something could not be written, in the system's words.

    Arrow hides the system's error number in its text.
    """
    found = re.search(r"\[errno (\d+)\]", str(error), re.IGNORECASE)
    number = getattr(error, "errno", None) or (int(found[1]) if found else None)
    return os.strerror(number) if number else str(error).rstrip(".")
