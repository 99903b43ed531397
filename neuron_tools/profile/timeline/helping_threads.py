"""Threads that take a share of work which runs without the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

MOST_SHARES = 4
FEWEST_ROWS = 1 << 14  # of a share: less is done before a thread wakes

Result = TypeVar("Result")


class HelpingThreads:
    """As many threads as help the one that asks."""

    def __init__(self) -> None:
        self._most = min(os.cpu_count() or 1, MOST_SHARES)
        self._executor = ThreadPoolExecutor(max(self._most - 1, 1), thread_name_prefix="drawing")

    def shares(self, rows: int) -> int:
        """Into how many shares to divide work on so many rows."""
        return max(min(rows // FEWEST_ROWS, self._most), 1)

    def run(self, work: Sequence[Callable[[], Result]]) -> list[Result]:
        """The results of all pieces of work; what no thread has begun by then, the caller does itself."""
        others = [self._executor.submit(piece) for piece in work[1:]]
        results = [piece() for piece in work[:1]]
        for piece, other in zip(work[1:], others, strict=True):
            results.append(piece() if other.cancel() else other.result())
        return results


HELPING_THREADS = HelpingThreads()
