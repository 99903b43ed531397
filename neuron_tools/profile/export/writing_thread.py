"""Encodes and writes in a thread of its own, in order, while the caller prepares what comes next."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import BinaryIO, TypeAlias

Buffer: TypeAlias = "bytes | memoryview"
PIECES_IN_FLIGHT = 2


class WritingThread:
    """Writes pieces of a file one after another. Close it, or use it in a `with` statement.

    Args:
        stream: The file.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="export-writer")
        self._pending: deque[Future[None]] = deque()

    def __enter__(self) -> WritingThread:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._wait(0 if kind is None else None)
        finally:
            self._executor.shutdown(cancel_futures=True)

    def write(self, encode: Callable[[], Iterable[Buffer]]) -> None:
        """Encode and write a piece soon. Waits while two are in flight.

        Raises:
            Exception: Encoding or writing an earlier one failed.
        """
        self._wait(PIECES_IN_FLIGHT - 1)
        self._pending.append(self._executor.submit(self._write, encode))

    def _write(self, encode: Callable[[], Iterable[Buffer]]) -> None:
        for piece in encode():
            self._stream.write(piece)

    def _wait(self, most: int | None) -> None:
        """Wait until at most so many pieces are in flight; None does not wait."""
        while most is not None and len(self._pending) > most:
            self._pending.popleft().result()
