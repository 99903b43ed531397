"""A file to import: opened safely, decompressed as it is read, in blocks."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from neuron_tools.profile.importers.ahead import ahead
from neuron_tools.profile.importers.errors import TraceError

BLOCK_BYTES = 8 << 20
HEAD_BYTES = 1 << 16
GZIP_MAGIC = b"\x1f\x8b"
LARGEST_RATIO = 300
"""Traces compress 10 to 60 times. What unpacks to more than this many times its size, beyond the first
gigabyte, is no trace."""
ALWAYS_ALLOWED_BYTES = 1 << 30


class TraceFile:
    """One regular file, plain or gzip.

    Args:
        path: The file.

    Raises:
        TraceError: It is not there, cannot be read, or is no regular file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_truncated = False
        self._packed_bytes = _regular_size(path)
        self.bytes_read = 0
        self.head = self._read_head()

    @property
    def size_bytes(self) -> int:
        """Bytes on disk."""
        return self._packed_bytes

    def blocks(self, size: int = BLOCK_BYTES) -> Iterator[bytes]:
        """The unpacked content, each block read while the one before it is being used.

        A compressed file that is cut off or damaged ends early and sets `is_truncated`.

        Raises:
            TraceError: The disk fails, or the file unpacks to far more than any trace does.
        """
        yield from ahead(self._blocks(size))

    def content(self, most_bytes: int, advice: str) -> bytes:
        """The unpacked content, whole.

        Args:
            most_bytes: Refuse more.
            advice: What to do about more, as the end of a sentence.

        Raises:
            TraceError: There is more, or as `blocks` raises.
        """
        parts, size = [], 0
        for block in self.blocks():
            size += len(block)
            if size > most_bytes:
                raise TraceError(f"{self.path} unpacks to over {most_bytes >> 20} MiB: {advice}.")
            parts.append(block)
        return b"".join(parts)

    def _blocks(self, size: int) -> Iterator[bytes]:
        unpacked = 0
        try:
            with self._open() as stream, self._unpacking(stream) as content:
                while block := self._next_block(content, size):
                    unpacked += len(block)
                    self.bytes_read = stream.tell()
                    self._check_ratio(unpacked)
                    yield block
        except OSError as error:
            raise TraceError(f"{self.path} cannot be read ({error.strerror or error}).") from error

    def _next_block(self, content: BinaryIO, size: int) -> bytes:
        try:
            return content.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            self.is_truncated = True
            return b""

    def _check_ratio(self, unpacked: int) -> None:
        if unpacked > max(ALWAYS_ALLOWED_BYTES, LARGEST_RATIO * self._packed_bytes) and self.is_packed:
            raise TraceError(
                f"{self.path} unpacks to more than {LARGEST_RATIO} times its size: it is no trace. "
                "Unpack it with gunzip and import the result if it is one after all."
            )

    @property
    def is_packed(self) -> bool:
        """Whether it is compressed."""
        return self._magic == GZIP_MAGIC

    def _open(self) -> BinaryIO:
        return self.path.open("rb", buffering=1 << 20)

    def _unpacking(self, stream: BinaryIO) -> BinaryIO:
        return gzip.GzipFile(fileobj=stream) if self.is_packed else stream  # type: ignore[return-value]  # a file in all but its class

    def _read_head(self) -> bytes:
        try:
            with self._open() as stream:
                self._magic = stream.read(2)
                stream.seek(0)
                head = bytearray()
                content = self._unpacking(stream)
                while len(head) < HEAD_BYTES and (piece := self._next_block(content, HEAD_BYTES - len(head))):
                    head += piece
        except OSError as error:
            raise TraceError(f"{self.path} cannot be read ({error.strerror or error}).") from error
        return bytes(head)


def _regular_size(path: Path) -> int:
    try:
        status = os.stat(path)
    except OSError as error:
        raise TraceError(f"{path} cannot be read ({error.strerror or error}).") from error
    if not stat.S_ISREG(status.st_mode):
        raise TraceError(f"{path} is no regular file: name a trace file or a folder of Parquet tables.")
    return status.st_size
