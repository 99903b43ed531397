"""Tables of texts by number, in databases whose rows name texts by number."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.sqlite_file import SqliteFile

MOST_STRINGS = 20_000_000
_UNKNOWN = -1


class SqliteTexts:
    """A table of texts, by number.

    Args:
        database: It stands here.
        table, number, text: Its name, and those of its two columns.

    Raises:
        TraceError: It has more texts than any trace, or the database is damaged.
    """

    def __init__(self, database: SqliteFile, table: str, number: str, text: str) -> None:
        ids, texts = [], []
        count = 0
        for batch in database.batches(table, [number], [text]):
            count += batch.num_rows
            if count > MOST_STRINGS:
                raise TraceError(f"The export has more than {MOST_STRINGS:,} texts: it is no trace.")
            known = batch.filter(batch.column(0).is_valid())
            ids.append(known.column(0).to_numpy())
            texts.append(known.column(1))
        numbers = np.concatenate(ids) if ids else np.zeros(0, np.int64)
        order = np.argsort(numbers, kind="stable")
        self._numbers = numbers[order]
        self._texts = pa.concat_arrays(texts).take(pa.array(order)) if texts else pa.nulls(0, pa.string())

    def look_up(self, numbers: pa.Array) -> pa.Array:
        """Texts; null where a number is null or unknown."""
        if not len(self._numbers):
            return pa.nulls(len(numbers), pa.string())
        wanted = numbers.fill_null(_UNKNOWN).to_numpy(zero_copy_only=False)
        place = np.minimum(np.searchsorted(self._numbers, wanted), len(self._numbers) - 1)
        is_missing = (self._numbers[place] != wanted) | numbers.is_null().to_numpy(zero_copy_only=False)
        return self._texts.take(pa.array(place, mask=is_missing))
