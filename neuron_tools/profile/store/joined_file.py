"""Makes one Parquet file of several with the same columns: bytes are copied, nothing is encoded again.

So the row groups of a file can be encoded by several threads at once, each as a file of its own in memory.
pyarrow's `FileMetaData.append_row_groups` joins what ends of files say, but leaves the offsets as they are in
each file, for a `_metadata` file beside them; in one file they have to move.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from neuron_tools.frozen import frozen
from neuron_tools.profile.store import footer_kernel, layout
from neuron_tools.profile.store.footer_kernel import GROUP_COUNT, GROUPS_END, HEAD_END, ROW_COUNT

MAGIC = b"PAR1"
LENGTH_BYTES = 4
"""Of the number behind the end of a file: how long that is."""
MOST_GROWTH = 6
"""An offset takes at least two bytes with its field's number, and at most ten more when it grows."""
_ROWS_FIELD, _GROUPS_FIELD, _MANY_GROUPS = b"\x16", b"\x19", b"\xfc"
"""Fields that follow the one before: the number of rows; the row groups, a list of structs of any length."""

Bytes: TypeAlias = "npt.NDArray[np.uint8]"


@frozen
class ParquetBytes:
    """A whole Parquet file in memory.

    Attributes:
        groups: Its row groups, uint8.
        footer: Its end, uint8.
        places: Where the parts of its end stand (see `footer_kernel.locate`).
    """

    groups: Bytes
    footer: Bytes
    places: npt.NDArray[np.int64]

    @classmethod
    def of(cls, content: object) -> ParquetBytes:
        """A file that pyarrow has written, or read without complaint.

        Args:
            content: Anything with the buffer protocol.
        """
        data: Bytes = np.frombuffer(content, np.uint8)  # type: ignore[call-overload]  # any buffer does
        behind = len(data) - len(MAGIC) - LENGTH_BYTES
        length = int.from_bytes(data[behind : behind + LENGTH_BYTES].tobytes(), "little")
        footer = data[behind - length : behind]
        places = np.zeros(GROUPS_END + 1, np.int64)
        footer_kernel.locate(footer, places)
        return cls(data[len(MAGIC) : behind - length], footer, places)

    @property
    def head(self) -> bytes:
        """The version and the columns: files that are equal in them can be joined."""
        return self.footer[: self.places[HEAD_END]].tobytes()

    @property
    def tail(self) -> bytes:
        """What the end says behind the row groups."""
        return self.footer[self.places[GROUPS_END] :].tobytes()

    def moved_groups(self, moved: int, ordinal: int) -> bytes:
        """What the end of another file says of these row groups.

        Args:
            moved: How many bytes further on they stand there.
            ordinal: How many row groups stand before them.
        """
        out = np.empty(MOST_GROWTH * len(self.footer), np.uint8)
        filled = footer_kernel.move_groups(self.footer, self.places, moved, ordinal, out)
        return out[:filled].tobytes()


class JoinedFile:
    """A file that is being joined, under a temporary name; `close` puts it into its place.

    Args:
        path: Its place.
        first: The file that it begins with.

    Attributes:
        head: What the head of every further one must be.
        groups: Row groups until now.

    Raises:
        OSError: The disk is full or the folder cannot be written.
    """

    def __init__(self, path: Path, first: ParquetBytes) -> None:
        self.head, self._tail = first.head, first.tail
        self.groups = self._rows = 0
        self._told: list[bytes] = []
        self._path = path
        self._temporary = path.with_name(f"{path.name}{layout.TEMPORARY_SUFFIX}")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._temporary.open("wb")
        self._length = self._write(MAGIC)
        self.append(first)

    def append(self, added: ParquetBytes) -> None:
        """Add the row groups of a file with the same head. On failure the temporary file is removed."""
        self._told.append(added.moved_groups(self._length - len(MAGIC), self.groups))
        self._length += self._write(added.groups.data)
        self.groups += int(added.places[GROUP_COUNT])
        self._rows += int(added.places[ROW_COUNT])

    def close(self) -> None:
        """Finish the file and rename it: readers see the whole of it or nothing."""
        rows, groups = _number(2 * self._rows), _number(self.groups)
        footer = b"".join(
            [self.head, _ROWS_FIELD, rows, _GROUPS_FIELD, _MANY_GROUPS, groups, *self._told, self._tail]
        )
        self._write(footer + len(footer).to_bytes(LENGTH_BYTES, "little") + MAGIC)
        try:
            self._file.close()
            os.replace(self._temporary, self._path)
        except BaseException:
            self._temporary.unlink(missing_ok=True)
            raise

    def _write(self, content: bytes | memoryview) -> int:
        try:
            return self._file.write(content)
        except BaseException:
            self._discard()
            raise

    def _discard(self) -> None:
        try:
            self._file.close()
        except OSError:
            pass  # the first failure is the one to report
        self._temporary.unlink(missing_ok=True)


def _number(value: int) -> bytes:
    out = np.empty(footer_kernel.LONGEST_NUMBER, np.uint8)
    return out[: footer_kernel.put_number(out, 0, value)].tobytes()


def mapped(path: Path) -> mmap.mmap:
    """The bytes of a file, read when they are looked at.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
