"""Reads a profile's own tables for those who compute from them: derived tables, checks, exports.

Unlike `reader.Profile`, which answers strangers' queries behind a sandbox, this is for the package's own
code: plain DuckDB over the same views, and a scan that streams columns in bounded memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neuron_tools.arrays import Ints
from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.store import layout
from neuron_tools.profile.store.catalog import NamedViews, read_catalog, text_literal
from neuron_tools.profile.store.damage import DamagedProfileError, reading

SCAN_ROWS = 1 << 18
MEMORY_LIMIT = "2GiB"
_SMALL = 1 << 16

_WRONG_QUERY = (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException)
"""Of ours: not the profile's fault."""

Key = TypeVar("Key", bound=Hashable)


@contextmanager
def _reading(place: Path) -> Iterator[None]:
    """Turn the readers' errors into one sentence for the user."""
    try:
        with reading(place, duckdb.Error):
            yield
    except DamagedProfileError as error:
        if isinstance(error.__cause__, _WRONG_QUERY):
            raise error.__cause__ from None  # a wrong query of ours, not the profile's fault
        raise


class NoSpaceError(NeuronToolsError):
    """What does not fit into memory does not fit on the disk either.

    Args:
        folder: Where it was to stand.
    """

    def __init__(self, folder: Path, reason: object) -> None:
        super().__init__(
            f"What does not fit into memory cannot be written in {folder} ({reason}): free space there."
        )


class RecordedTables:
    """The whole parts of a profile's tables. Close it, or use it in a `with` statement.

    Args:
        spill_into: Where what does not fit into memory stands meanwhile; None for the folder of temporary
            files, which many machines keep in memory.

    Attributes:
        missing: Parts that are damaged or cut off, one sentence each, beginning with the table's name.
        spill_folder: A folder for temporary files, removed with the rest.

    Raises:
        NoSpaceError: It cannot be made.
    """

    def __init__(self, directory: Path, spill_into: Path | None = None) -> None:
        self._catalog = read_catalog(directory)
        self.missing = self._catalog.missing
        prefix = "neuron-tools-" if spill_into is None else layout.SPILL_PREFIX
        try:
            self._spill = tempfile.TemporaryDirectory(prefix=prefix, dir=spill_into)
        except OSError as error:
            raise NoSpaceError(spill_into or Path(tempfile.gettempdir()), error.strerror) from error
        self.spill_folder = Path(self._spill.name)
        self._connection = duckdb.connect(":memory:")
        self._connection.execute(f"SET memory_limit = {text_literal(MEMORY_LIMIT)}")
        self._connection.execute(f"SET temp_directory = {text_literal(str(self.spill_folder))}")
        self._views = NamedViews(self._connection, self._catalog)

    def __enter__(self) -> RecordedTables:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the files."""
        self._connection.close()
        self._spill.cleanup()

    def row_count(self, table: str) -> int:
        """Rows of a table; 0 if the profile does not have it."""
        stored = self._catalog.tables.get(table)
        return stored.rows if stored else 0

    def table_names(self) -> list[str]:
        """Tables with at least one row, in the schema's order."""
        return [name for name in self._catalog.tables if self.row_count(name)]

    def columns(self, table: str) -> frozenset[str]:
        """Columns that the table's parts have."""
        stored = self._catalog.tables.get(table)
        return stored.columns if stored else frozenset()

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """The rows of a small result."""
        found = self.arrow(query, parameters)
        return [dict(row) for row in found.to_pylist()]

    def arrow(self, query: str, parameters: Sequence[Any] = ()) -> pa.Table:
        """The result of a query.

        Raises:
            DamagedProfileError: A part's data cannot be read.
            NoSpaceError: The query takes more memory and disk than there is.
        """
        with _reading(self._catalog.directory), self._spilling():
            self._views.make(query)
            return self._connection.sql(query, params=list(parameters) or None).to_arrow_table()

    @contextmanager
    def _spilling(self) -> Iterator[None]:
        try:
            yield
        except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
            if isinstance(error, duckdb.IOException) and str(self.spill_folder) not in str(error):
                raise
            raise NoSpaceError(self.spill_folder.parent, str(error).splitlines()[0]) from error

    def row(self, query: str) -> dict[str, Any]:
        """The only row of a result."""
        return self.rows(query)[0]

    def scan(self, table: str, columns: Sequence[str]) -> Iterator[dict[str, pa.Array]]:
        """Columns of a table in batches of at most 256 Ki rows, none across row groups, as they were written.

        Texts come as dictionary arrays; a column that a part lacks comes as nulls.

        Raises:
            DamagedProfileError: A part's data cannot be read.
        """
        stored = self._catalog.tables.get(table)
        fields = TABLES[table].by_name
        texts = [name for name in columns if fields[name].type == "string"]
        for path in stored.paths if stored else ():
            with _reading(path):
                held = frozenset(pq.read_schema(path).names)
            with (
                _reading(path),
                pq.ParquetFile(path, read_dictionary=[t for t in texts if t in held]) as part,
            ):
                present = [name for name in columns if name in held]
                for group in range(part.num_row_groups):
                    for batch in part.iter_batches(SCAN_ROWS, row_groups=[group], columns=present):
                        yield {name: _column(batch, name, fields[name].type) for name in columns}


def _column(batch: pa.RecordBatch, name: str, kind: str) -> pa.Array:
    wanted = {"string": pa.dictionary(pa.int32(), pa.string()), "int64": pa.int64(), "int32": pa.int32()}.get(
        kind
    )
    if name not in batch.schema.names:
        return pa.nulls(batch.num_rows, wanted)
    column = batch.column(name)
    return column if wanted is None or column.type == wanted else column.cast(wanted)


def integers(column: pa.Array, null: int = 0) -> Ints:
    """An integer column as int64, nulls replaced."""
    filled = column.fill_null(null) if column.null_count else column
    values: Ints = filled.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return values


def text_codes(texts: pa.DictionaryArray) -> Ints:
    """Place of each text in the dictionary as int64; -1 where it is null."""
    return integers(texts.indices, null=-1)


class Numbers(Generic[Key]):
    """Numbers keys in the order in which they are first seen."""

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self._numbers: dict[Key, int] = {}

    def number(self, key: Key) -> int:
        """The key's number; the next one on first sight."""
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(self.keys)
            self.keys.append(key)
        return known


class Numbering(Numbers[Key]):
    """Numbers keys that rows give as packed integers, which may mean something else in every batch."""

    def encode(self, packed: Ints, key_of: Callable[[int], Key]) -> Ints:
        """Numbers of a batch: `key_of` is asked once for each packed value. int64, shape (rows,)."""
        if not len(packed):
            return packed
        if int(packed.max()) < len(packed) + _SMALL:  # a table by value costs less than sorting
            present = np.flatnonzero(np.bincount(packed))
            own = np.zeros(int(packed.max()) + 1, np.int64)
            own[present] = [self.number(key_of(value)) for value in present.tolist()]
            return own[packed]
        values, which = np.unique(packed, return_inverse=True)
        return np.array([self.number(key_of(value)) for value in values.tolist()], np.int64)[which]


class TextCodes(Numbers[str]):
    """Numbers texts across batches whose dictionaries differ. Null counts as the empty text."""

    @property
    def texts(self) -> list[str]:
        """The texts by number."""
        return self.keys

    def encode(self, column: pa.DictionaryArray) -> Ints:
        """Numbers of a text column, int64, shape (rows,)."""
        own = np.array([self.number(text or "") for text in column.dictionary.to_pylist()], np.int64)
        codes = integers(column.indices, null=-1)
        if column.null_count:
            own = np.append(own, self.number(""))
        return own[codes] if len(own) else np.zeros(0, np.int64)
