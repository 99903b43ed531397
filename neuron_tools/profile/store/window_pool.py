"""Threads that sort and encode windows while further rows come, in any order; they are written in turn."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock, Semaphore
from typing import TypeVar

import pyarrow as pa

from neuron_tools.profile.store.window import Workspace

WORKERS = 2
WINDOWS_IN_FLIGHT = 3

Prepared = TypeVar("Prepared")


class Chain:
    """Work of which each piece is written after the one before it: the windows of one table.

    What is prepared too early waits here; no thread waits for it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._submitted = self._next = 0
        self._ready: dict[int, Callable[[], None]] = {}
        self._failure: BaseException | None = None

    def place(self) -> int:
        """The number of a further piece; asked for in order."""
        self._submitted += 1
        return self._submitted - 1

    def write(self, place: int, write: Callable[[], None]) -> None:
        """Write a piece and those that waited for it, or keep it until those before it are there.

        Raises:
            Exception: Writing failed, now or earlier in the chain.
        """
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self._ready[place] = write
            try:
                while self._next in self._ready:
                    self._ready.pop(self._next)()
                    self._next += 1
            except BaseException as error:
                self._failure = error
                raise

    def fail(self, error: BaseException) -> None:
        """A piece could not be prepared: those behind it are not written."""
        with self._lock:
            self._failure = self._failure or error
            self._ready = {}


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

        `prepare` gets a workspace that is its own until it returns.

        Waits while three pieces are in flight.

        Raises:
            Exception: Earlier work failed.
        """
        self._raise_failures()
        if self._executor is None:
            self._executor = ThreadPoolExecutor(WORKERS, thread_name_prefix="profile-writer")
        place = chain.place()

        def run() -> None:
            try:
                prepared = self._prepared(prepare)
                chain.write(place, lambda: write(prepared))
            except BaseException as error:
                chain.fail(error)
                raise
            finally:
                self._slots.release()

        self._slots.acquire()
        self._pending.append(self._executor.submit(run))

    def _prepared(self, prepare: Callable[[Workspace], Prepared]) -> Prepared:
        workspace = self._workspaces.pop()
        try:
            return prepare(workspace)
        finally:
            self._workspaces.append(workspace)

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
