"""Columns of a table under construction: numbers as NumPy arrays, repeated texts as codes.

A capture repeats the same few thousand texts millions of times, so a text column is kept as int32 codes
into an interned list and becomes an Arrow dictionary array only when a block is handed to the writer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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

    def codes_by(self, keys: npt.NDArray[Any], text: Callable[[int], str | None]) -> Codes:
        """Codes of texts that follow from numbers: each distinct number is asked for once."""
        distinct, places = np.unique(keys, return_inverse=True)
        return self.codes(map(text, distinct.tolist()))[places]

    def array(self, codes: Codes) -> pa.DictionaryArray:
        """Arrow dictionary array whose dictionary holds only the texts that occur in `codes`."""
        used, indices = self._compact(codes)
        texts = [self._texts[code] for code in used.tolist()]
        nulls = codes == NULL_CODE
        return pa.DictionaryArray.from_arrays(
            pa.array(indices, pa.int32(), mask=nulls if nulls.any() else None), pa.array(texts, pa.string())
        )

    def _compact(self, codes: Codes) -> tuple[Codes, Codes]:
        """The codes that occur, but null, ascending, and the place of each code among them."""
        if len(self._texts) > len(codes):
            used, places = np.unique(np.append(codes, NULL_CODE), return_inverse=True)
            return used[1:], places[:-1].astype(np.int32) - 1
        occurs = np.zeros(len(self._texts) + 1, bool)  # the last is null's
        occurs[codes] = True
        used = np.flatnonzero(occurs[:-1]).astype(np.int32)
        return used, (np.cumsum(occurs, dtype=np.int32) - 1)[codes]


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
