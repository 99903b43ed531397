"""Columns of a table under construction: numbers as NumPy arrays, repeated texts as codes.

A capture repeats the same few thousand texts millions of times, so a text column is kept as int32 codes
into an interned list and becomes an Arrow dictionary array only when a block is handed to the writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Codes = npt.NDArray[np.int32]
NULL_CODE = -1


class TextPool:
    """Interned texts of one column. Code -1 is null."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._texts: list[str] = []

    def code(self, text: str | None) -> int:
        """The text's code; a new one on first sight."""
        if text is None:
            return NULL_CODE
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self._texts)
            self._texts.append(text)
        return code

    def text(self, code: int) -> str | None:
        """The text of a code."""
        return None if code == NULL_CODE else self._texts[code]

    def codes(self, texts: Iterable[str | None]) -> Codes:
        """Codes of many texts."""
        return np.array([self.code(text) for text in texts], np.int32)

    def array(self, codes: Codes) -> pa.DictionaryArray:
        """Arrow dictionary array whose dictionary holds only the texts that occur in `codes`."""
        used, compact = np.unique(codes, return_inverse=True)
        has_null = bool(len(used)) and used[0] == NULL_CODE
        texts = [self._texts[code] for code in used[1 if has_null else 0 :]]
        indices = compact.astype(np.int32) - (1 if has_null else 0)
        mask = indices < 0 if has_null else None
        return pa.DictionaryArray.from_arrays(
            pa.array(indices, pa.int32(), mask=mask), pa.array(texts, pa.string())
        )


class TextPools:
    """One pool per column name of a table."""

    def __init__(self) -> None:
        self._pools: dict[str, TextPool] = {}

    def __getitem__(self, column: str) -> TextPool:
        pool = self._pools.get(column)
        if pool is None:
            pool = self._pools[column] = TextPool()
        return pool

    def table(self, numbers: Mapping[str, Any], texts: Mapping[str, Codes]) -> dict[str, Any]:
        """The columns of one block, ready for the writer."""
        columns: dict[str, Any] = dict(numbers)
        columns.update({name: self[name].array(codes) for name, codes in texts.items()})
        return columns
