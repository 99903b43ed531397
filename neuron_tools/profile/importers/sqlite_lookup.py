"""Tables of a database whose rows other tables name by number, held in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_tools.arrays import Ints
from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.sqlite_file import SqliteFile

MOST_ROWS = 100_000_000
MOST_TEXTS = 20_000_000
MOST_BYTES = (1 << 31) - 1
"""Of the texts of a column: what one array of Arrow can hold."""
_UNKNOWN = -1


class SqliteLookup:
    """Columns of a table by the number of the row; of rows with one number, the first counts.

    Args:
        database: It stands here.
        table: Its name; one that is absent has no rows.
        key: Column of the number.
        integers: Columns with whole numbers.
        texts: Columns with texts.
        blank: What texts say that say nothing: they are null.

    Raises:
        TraceError: It has more rows than any trace, or the database is damaged.
    """

    def __init__(
        self,
        database: SqliteFile,
        table: str,
        key: str,
        *,
        integers: Sequence[str] = (),
        texts: Sequence[str] = (),
        blank: str = "",
    ) -> None:
        wanted = [*integers, *texts]
        kinds = [pa.int64()] * len(integers) + [pa.string()] * len(texts)
        schema = pa.schema([(key, pa.int64()), *zip(wanted, kinds)])
        limit = MOST_TEXTS if texts else MOST_ROWS
        kept: list[pa.RecordBatch] = []
        count = size = 0
        for batch in database.batches(table, [key, *integers], texts, blank=blank):
            count, size = count + batch.num_rows, size + batch.nbytes
            if count > limit or (texts and size > MOST_BYTES):
                raise TraceError(f"The database has {count:,} rows of {table} or more: it is no trace.")
            kept.append(batch.filter(batch.column(0).is_valid()))
        rows = pa.Table.from_batches(kept, schema).combine_chunks()
        order = _order(rows.column(0).to_numpy())
        if order is not None:
            rows = rows.take(pa.array(order))
        self._keys: Ints = rows.column(0).to_numpy()
        self._columns = {name: _array(rows.column(name)) for name in wanted}

    def __len__(self) -> int:
        return len(self._keys)

    def knows(self, keys: pa.Array) -> npt.NDArray[np.bool_]:
        """Whether there is a row of each number."""
        return ~self._places(keys)[1]

    def look_up(self, keys: pa.Array, column: str | None = None) -> pa.Array:
        """Values of a column, the first one if not told; null where a number is null or unknown."""
        name = next(iter(self._columns)) if column is None else column
        if not len(self._keys):
            return pa.nulls(len(keys), self._columns[name].type)
        place, is_missing = self._places(keys)
        return self._columns[name].take(pa.array(place, mask=is_missing))

    def _places(self, keys: pa.Array) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Row of each number, and whether there is none."""
        if not len(self._keys):
            return np.zeros(len(keys), np.int64), np.ones(len(keys), bool)
        wanted = keys.fill_null(_UNKNOWN).to_numpy(zero_copy_only=False)
        place = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        is_missing = (self._keys[place] != wanted) | keys.is_null().to_numpy(zero_copy_only=False)
        return place, is_missing


def _order(keys: Ints) -> Ints | None:
    """The order of rising numbers; None where they stand in it, as those of a primary key do."""
    if bool(np.all(keys[1:] >= keys[:-1])):
        return None
    return np.argsort(keys, kind="stable")


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
