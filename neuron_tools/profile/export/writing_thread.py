"""Encodes in one thread and writes in another, in order, while the caller prepares what comes next."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import BinaryIO, TypeAlias

Buffer: TypeAlias = "bytes | memoryview"
PIECES_IN_FLIGHT = 2
BUFFERS_IN_FLIGHT = 4


class WritingThread:
    """Writes pieces of a file one after another. Close it, or use it in a `with` statement.

    Args:
        stream: The file.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._encoder = ThreadPoolExecutor(1, thread_name_prefix="export-encoder")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="export-writer")
        self._encoded: deque[Future[None]] = deque()
        self._written: deque[Future[int]] = deque()  # used by the encoder's thread, and when that has ended

    def __enter__(self) -> WritingThread:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                _wait(self._encoded, 0)
                _wait(self._written, 0)
        finally:
            self._encoder.shutdown(cancel_futures=True)
            self._writer.shutdown(cancel_futures=True)

    def write(self, encode: Callable[[], Iterable[Buffer]]) -> None:
        """Encode and write a piece soon. Waits while two are in flight.

        Raises:
            Exception: Encoding or writing an earlier one failed.
        """
        _wait(self._encoded, PIECES_IN_FLIGHT - 1)
        self._encoded.append(self._encoder.submit(self._encode, encode))

    def _encode(self, encode: Callable[[], Iterable[Buffer]]) -> None:
        for buffer in encode():
            _wait(self._written, BUFFERS_IN_FLIGHT - 1)
            self._written.append(self._writer.submit(self._stream.write, buffer))


def _wait(pending: deque[Future[None]] | deque[Future[int]], most: int) -> None:
    """Wait until at most so many are pending; the first failure is raised."""
    while len(pending) > most:
        pending.popleft().result()
