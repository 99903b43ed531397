"""Arrays in one file: appended when an index is built, mapped into memory when it is read."""

from __future__ import annotations

import mmap
import os
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

    def reserve(self, kind: str, count: int) -> Region:
        """Leave room for an array that is written piece by piece."""
        self._file.flush()
        offset = self._offset + -self._offset % ALIGNMENT
        self._offset = offset + count * np.dtype(kind).itemsize
        self._file.truncate(self._offset)
        self._file.seek(self._offset)
        return Region(self._file.fileno(), offset, kind, count)

    def read(self, reference: Reference) -> npt.NDArray[Any]:
        """An array that was appended, as a copy."""
        offset, kind, count = reference
        self._file.flush()
        values = np.empty(count, kind)
        self._file.seek(offset)
        self._file.readinto(values.data)  # type: ignore[attr-defined]
        self._file.seek(0, 2)
        return values


class Region:
    """Room for an array in a file that is being written."""

    def __init__(self, file: int, offset: int, kind: str, count: int) -> None:
        self.reference: Reference = [offset, kind, count]
        self._file, self._next, self._kind = file, offset, kind

    def write(self, values: npt.NDArray[Any]) -> None:
        """Write what follows; all pieces together fill the room.

        Raises:
            OSError: The disk is full.
        """
        self._next += os.pwrite(self._file, values.astype(self._kind).data, self._next)


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
    return type_up_to(int(values.max()))


def type_up_to(greatest: int) -> str:
    """The narrowest type for integers from 0 to `greatest`."""
    return next((kind for size, kind in _SIZES if greatest < size), "i8")
