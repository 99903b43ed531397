"""Threads that sort and write windows while further rows come: sorting in any order, writing in turn."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Semaphore
from typing import TypeVar

import pyarrow as pa

from neuron_tools.profile.window import Workspace

WORKERS = 2
WINDOWS_IN_FLIGHT = 3

Prepared = TypeVar("Prepared")


class Chain:
    """Work of which each piece is written after the one before it: the windows of one table."""

    def __init__(self) -> None:
        self.last: Future[None] | None = None


class WindowPool:
    """Runs work in two threads. What is in flight is bounded, and so is its memory."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._slots = Semaphore(WINDOWS_IN_FLIGHT)
        self._pending: list[Future[None]] = []
        self._workspaces = [Workspace() for _ in range(WORKERS)]

    def submit(
        self, chain: Chain, prepare: Callable[[Workspace], Prepared], write: Callable[[Prepared], None]
    ) -> None:
        """Run `prepare` soon, and `write` with its result after everything before it in the chain.

        `prepare` gets a workspace that is its own until `write` has returned.

        Waits while three pieces are in flight.

        Raises:
            Exception: Earlier work failed.
        """
        self._raise_failures()
        if self._executor is None:
            self._executor = ThreadPoolExecutor(WORKERS, thread_name_prefix="profile-writer")
        before = chain.last

        def run() -> None:
            workspace = self._workspaces.pop()
            try:
                prepared = prepare(workspace)
                if before is not None:
                    before.result()
                write(prepared)
            finally:
                self._workspaces.append(workspace)
                self._slots.release()

        self._slots.acquire()
        chain.last = self._executor.submit(run)
        self._pending.append(chain.last)

    def drain(self) -> None:
        """Wait until everything is written.

        Raises:
            Exception: Some of it failed.
        """
        pending, self._pending = self._pending, []
        failures = [error for future in pending if (error := future.exception()) is not None]
        if failures:
            raise failures[0]

    def close(self) -> None:
        """Wait for what runs, end the threads, and give their memory back: the pool is not used again."""
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None
        self._workspaces = []
        pa.default_memory_pool().release_unused()

    def _raise_failures(self) -> None:
        done = [future for future in self._pending if future.done()]
        self._pending = [future for future in self._pending if not future.done()]
        for future in done:
            future.result()
