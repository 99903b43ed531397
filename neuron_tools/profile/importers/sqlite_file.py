"""SQLite databases of unknown origin, read without running anything that they bring along.

Only stored tables are read, never views, virtual tables, functions or triggers; the database is opened
read-only, and values have the limits of `LARGEST_VALUE_BYTES`.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.json_decode import LARGEST_TIME
from neuron_tools.profile.importers.trace_file import TraceFile

MAGIC = b"SQLite format 3\x00"
ROWS_PER_BATCH = 1 << 16
LARGEST_VALUE_BYTES = 16 << 20
LARGEST_FILE_BYTES = 256 << 30
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ})
_PLAIN_TABLE = re.compile(r"^\s*CREATE\s+TABLE\s", re.IGNORECASE)
_MOST_TABLES = 4096
_MOST_DIGITS = 19
_DAMAGED = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged database raises: the words of an error may hold the damaged bytes too."""


class SqliteFile:
    """The stored tables of a database.

    Args:
        connection: Open, and allowed to read only.
        path: Named in errors.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self.columns = self._tables()

    def has(self, table: str, *columns: str) -> bool:
        """Whether a table is there with these columns."""
        return set(columns) <= self.columns.get(table, frozenset())

    def has_rows(self, table: str) -> bool:
        """Whether a table is there and not empty."""
        names = list(self.columns.get(table, ()))[:1]
        return next(self.batches(table, names, ()), None) is not None

    def batches(
        self,
        table: str,
        integers: Sequence[str],
        texts: Sequence[str],
        numbers: Sequence[str] = (),
        blank: str = "",
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a table in chunks, none where it is absent: int64, string and float64 columns.

        A column that the table lacks is null.
        Values of another type than the column's become null; digits count as the number that they say.

        Args:
            table: Its name.
            integers, texts, numbers: Columns.
            blank: What texts say that say nothing: they become null, which costs less than a text.

        Raises:
            TraceError: The database is damaged.
        """
        if table not in self.columns:
            return
        known = self.columns[table]
        wanted = [*integers, *texts, *numbers]
        told = {name: f'CASE "{name}" WHEN ? THEN NULL ELSE "{name}" END' for name in texts if blank}
        shown = ", ".join(told.get(name, f'"{name}"') if name in known else "NULL" for name in wanted)
        values = [blank for name in texts if blank and name in known]
        kinds = [*(pa.int64() for _ in integers), *(pa.string() for _ in texts)]
        kinds += [pa.float64() for _ in numbers]
        try:
            with closing(self._connection.execute(f'SELECT {shown} FROM "{table}"', values)) as cursor:
                while rows := cursor.fetchmany(ROWS_PER_BATCH):
                    columns = [_column(column, kind) for column, kind in zip(zip(*rows), kinds)]
                    yield pa.RecordBatch.from_arrays(columns, names=wanted)
        except (*_DAMAGED, OverflowError) as error:
            raise _damage_of(self._path, error) from error

    def _tables(self) -> dict[str, frozenset[str]]:
        query = f"SELECT name, sql FROM sqlite_master WHERE type = 'table' LIMIT {_MOST_TABLES}"
        try:
            return {
                name: self._columns_of(name)
                for name, sql in self._connection.execute(query).fetchall()
                if isinstance(name, str) and '"' not in name and _PLAIN_TABLE.match(str(sql))
            }
        except _DAMAGED as error:
            raise _damage_of(self._path, error) from error

    def _columns_of(self, table: str) -> frozenset[str]:
        """Columns that are stored; those that are computed would run what the database brings along."""
        rows = self._connection.execute(f'PRAGMA table_xinfo("{table}")').fetchall()
        return frozenset(str(name) for _, name, *_, hidden in rows if not hidden and '"' not in str(name))


def _damage_of(path: Path, error: Exception) -> TraceError:
    why = "its text is no UTF-8" if isinstance(error, UnicodeDecodeError) else error
    return TraceError(f"{path} is damaged ({why}): export it again.")


@contextmanager
def opened(file: TraceFile, folder: Path) -> Iterator[SqliteFile]:
    """The database in a file, which is unpacked into the folder where it is packed.

    Raises:
        TraceError: It cannot be opened or unpacked.
    """
    path = _unpacked(file, folder) if file.is_packed else file.path
    try:
        connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)
    except sqlite3.Error as error:
        raise TraceError(f"{file.path} cannot be opened ({error}).") from error
    with closing(connection):
        connection.text_factory = lambda content: content.decode(errors="replace")
        _limit(connection)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        database = SqliteFile(connection, file.path)
        connection.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
        )
        yield database


def _limit(connection: sqlite3.Connection) -> None:
    """Bounds the size of a value; Python 3.10 cannot."""
    if sys.version_info >= (3, 11):
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE_BYTES)


def _unpacked(file: TraceFile, folder: Path) -> Path:
    path, size = folder / "unpacked.sqlite", 0
    with path.open("wb") as target:
        for block in file.blocks():
            size += len(block)
            if size > min(LARGEST_FILE_BYTES, shutil.disk_usage(folder).free // 2 + size):
                raise TraceError(f"{file.path} unpacks to more than the disk has room for.")
            target.write(block)
    return path


def _column(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        if kind == pa.float64():  # Arrow takes no whole number that a float only comes near to
            numbers = (float(value) if isinstance(value, (int, float)) else None for value in values)
            return pa.array(list(numbers), kind)
        wanted = {pa.int64(): int}.get(kind, str)
        known = map(_as_number, values) if kind == pa.int64() else values
        return pa.array([value if isinstance(value, wanted) else None for value in known], kind)


def _as_number(value: object) -> object:
    """Whole numbers that stand as text, which SQLite takes for what they say, too."""
    if (
        not isinstance(value, str)
        or not value.isascii()
        or not value.isdecimal()
        or len(value) > _MOST_DIGITS
    ):
        return value
    number = int(value)
    return number if number < 1 << 63 else None


def times_of(column: pa.Array) -> Ints:
    """Times of rows, within what a profile can hold."""
    values: Ints = column.to_numpy(zero_copy_only=False)
    return np.clip(values, -LARGEST_TIME // 2, LARGEST_TIME // 2)


def ends_of(column: pa.Array, start: Ints) -> Ints:
    """Ends of rows; what has none, such as a mark, lasts no time."""
    ends: Ints = column.fill_null(0).to_numpy(zero_copy_only=False)
    has_end = column.is_valid().to_numpy(zero_copy_only=False)
    return np.where(has_end, np.clip(ends, -LARGEST_TIME // 2, LARGEST_TIME // 2), start)
