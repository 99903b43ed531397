"""Arrays in one file: appended when an index is built, mapped into memory when it is read."""

from __future__ import annotations

import mmap
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

ALIGNMENT = 8
_SIZES = ((1 << 8, "u1"), (1 << 16, "u2"), (1 << 32, "u4"))

Reference: TypeAlias = "list[Any]"
"""Where an array stands: byte offset, NumPy type, length."""


class BlobWriter:
    """Appends arrays to a new file. Close it, or use it in a `with` statement."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb+", buffering=1 << 20)
        self._offset = 0

    def __enter__(self) -> BlobWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def append(self, values: npt.NDArray[Any]) -> Reference:
        """Write an array as it is.

        Raises:
            OSError: The disk is full.
        """
        padding = -self._offset % ALIGNMENT
        self._file.write(bytes(padding))
        offset = self._offset + padding
        self._file.write(np.ascontiguousarray(values).data)
        self._offset = offset + values.nbytes
        return [offset, values.dtype.str[1:], len(values)]

    def append_fitting(self, values: npt.NDArray[Any]) -> Reference:
        """Write integers in the narrowest type that holds them: unsigned, or int64 if any is negative."""
        return self.append(values.astype(fitting_type(values), copy=False))

    def read(self, reference: Reference) -> npt.NDArray[Any]:
        """An array that was appended, as a copy."""
        offset, kind, count = reference
        self._file.flush()
        values = np.empty(count, kind)
        self._file.seek(offset)
        self._file.readinto(values.data)  # type: ignore[attr-defined]
        self._file.seek(0, 2)
        return values


class Blob:
    """A file of arrays, read-only and mapped: only what is looked at is read from the disk.

    Raises:
        OSError: It cannot be read.
        ValueError: It is empty.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __len__(self) -> int:
        return len(self._map)

    def array(self, reference: Reference) -> npt.NDArray[Any]:
        """An array as a view.

        Raises:
            ValueError: It reaches beyond the file.
        """
        offset, kind, count = reference
        return np.frombuffer(self._map, kind, count, offset) if count else np.empty(0, kind)


def fitting_type(values: npt.NDArray[Any]) -> str:
    """The narrowest type for integers: "u1", "u2", "u4" or "i8"."""
    if not len(values):
        return "u1"
    if int(values.min()) < 0:
        return "i8"
    highest = int(values.max())
    return next((kind for size, kind in _SIZES if highest < size), "i8")
