"""Arrays in one file: appended when an index is built, mapped into memory when it is read."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from neuron_tools.profile.store.remote import fetcher_of
from neuron_tools.profile.timeline.read_ahead import STEP_BYTES

ALIGNMENT = 8
_KINDS = {1: "u1", 2: "u2", 4: "u4", 8: "i8"}
_SIZES = ((1 << 8, "u1"), (1 << 16, "u2"), (1 << 32, "u4"))

Reference: TypeAlias = "list[Any]"
"""Where an array stands: byte offset, NumPy type, length."""


class BlobWriter:
    """Appends arrays to a new file. Close it, or use it in a `with` statement."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb+", buffering=1 << 20)
        self._offset = 0
        self._late: list[LateArray] = []

    def __enter__(self) -> BlobWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    @property
    def length(self) -> int:
        """Bytes that stand in the file, or that it has room for."""
        return self._offset

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

    def append_fitting(self, values: npt.NDArray[Any], *, late: bool = False) -> Reference:
        """Write integers, none of them negative, in the narrowest type that holds them.

        Args:
            late: Keep them in memory, and write them at the end, side by side with all that is late.
        """
        kind = fitting_type(values)
        if not late:
            return self.append(values.astype(kind, copy=False))
        room = self.reserve(kind, len(values), late=True)
        room.write(values)
        return room.reference

    def reserve(self, kind: str, count: int, *, late: bool = False) -> Region | LateArray:
        """Leave room for an array that is written piece by piece.

        Args:
            late: As in `append_fitting`; the reference is complete when `write_late` has returned.
        """
        if late:
            self._late.append(LateArray(kind, count))
            return self._late[-1]
        self._file.flush()
        offset = self._offset + -self._offset % ALIGNMENT
        self._offset = offset + count * np.dtype(kind).itemsize
        self._file.truncate(self._offset)
        self._file.seek(self._offset)
        return Region(self._file.fileno(), offset, kind, count)

    def write_late(self) -> Reference:
        """Write all that is late; where it stands, as bytes."""
        begin = self._offset
        for array in self._late:
            array.reference[0] = self.append(array.values)[0]
        self._late = []
        return [begin, "u1", self._offset - begin]

    def read(self, reference: Reference) -> npt.NDArray[Any]:
        """An array that was appended, as a copy."""
        offset, kind, count = reference
        self._file.flush()
        values = np.empty(count, kind)
        self._file.seek(offset)
        self._file.readinto(values.data)  # type: ignore[attr-defined]  # opened unbuffered
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


class LateArray:
    """Room for an array that stays in memory until the end."""

    def __init__(self, kind: str, count: int) -> None:
        self.reference: Reference = [0, kind, count]
        self.values = np.empty(count, kind)
        self._next = 0

    def write(self, values: npt.NDArray[Any]) -> None:
        """Write what follows; all pieces together fill the room."""
        self.values[self._next : self._next + len(values)] = values
        self._next += len(values)


class Blob:
    """A file of arrays, read-only and mapped: only what is looked at is read from the disk.

    Raises:
        OSError: It cannot be read.
        ValueError: It is empty.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._fetch = fetcher_of(path)
        if hasattr(mmap, "MADV_RANDOM"):  # else the system reads megabytes around each number looked at
            self._map.madvise(mmap.MADV_RANDOM)

    def __len__(self) -> int:
        return len(self._map)

    @property
    def is_whole(self) -> bool:
        """Whether all of it is there: else what is looked at through `array` is fetched before."""
        return self._fetch is None

    def want(self, reference: Reference) -> None:
        """Tell the system that an array is looked at soon, whole."""
        offset, kind, count = self._fetched(reference)
        begin = offset - offset % mmap.PAGESIZE
        length = min(offset + count * np.dtype(kind).itemsize, len(self._map)) - begin
        if hasattr(mmap, "MADV_WILLNEED"):
            for place in range(begin, begin + length, STEP_BYTES):
                self._map.madvise(mmap.MADV_WILLNEED, place, min(STEP_BYTES, begin + length - place))

    def forget(self) -> None:
        """Give back the memory of all that was looked at: it stays in the system's cache of files."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def array(self, reference: Reference) -> npt.NDArray[Any]:
        """An array as a view.

        Raises:
            ValueError: It reaches beyond the file.
        """
        offset, kind, count = self._fetched(reference)
        return np.frombuffer(self._map, kind, count, offset) if count else np.empty(0, kind)

    def _fetched(self, reference: Reference) -> Reference:
        offset, kind, count = reference
        if self._fetch is not None:
            self._fetch(offset, offset + count * np.dtype(kind).itemsize)
        return reference

    def holds(self, reference: Reference, kinds: str) -> bool:
        """Whether an array lies within the file, and its numbers are of one of these kinds of NumPy's."""
        offset, name, count = reference
        kind = np.dtype(name)
        if type(offset) is not int or type(count) is not int or kind.kind not in kinds:
            return False
        return offset >= 0 and count >= 0 and offset + count * kind.itemsize <= len(self)

    def numbers(self, offset: int, size: int, count: int) -> npt.NDArray[Any]:
        """An array of integers, none of them negative, of `size` bytes each, as a view.

        Raises:
            ValueError: It reaches beyond the file.
        """
        return self.array([offset, _KINDS[size], count])

    def words(self, size: int) -> npt.NDArray[Any]:
        """The whole file as integers of `size` bytes; what is left over at its end is left out."""
        return np.frombuffer(self._map, _KINDS[size], len(self._map) // size)


def mapped_bytes() -> int:
    """How much of mapped files, libraries among them, lies in this process; 0 where that is not known."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[2]) * mmap.PAGESIZE
    except OSError:
        return 0


def fitting_type(values: npt.NDArray[Any]) -> str:
    """The narrowest type for integers, none of them negative: "u1", "u2", "u4" or "i8"."""
    return type_up_to(int(values.max())) if len(values) else "u1"


def type_up_to(greatest: int) -> str:
    """The narrowest type for integers from 0 to `greatest`."""
    return next((kind for size, kind in _SIZES if greatest < size), "i8")
