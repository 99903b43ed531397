"""Calls that may never return, because a driver hangs: made in a thread that can be given up."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")


class BlockedError(Exception):
    """A call did not return in time, or an earlier one of the same key still has not."""


class _Batch(Generic[Key, Result]):
    """Calls to make in order; `position` is the one that is being made."""

    def __init__(self, calls: Sequence[tuple[Key, Callable[[], Result]]]) -> None:
        self.calls = calls
        self.outcomes: dict[Key, Result | Exception] = {}
        self.position = 0
        self.is_given_up = False
        self._running = threading.Lock()
        self._running.acquire()
        self._moving_on = threading.Lock()

    @property
    def has_ended(self) -> bool:
        """Whether no call is being made any more."""
        return not self._running.locked()

    def run(self) -> None:
        """Make the calls; stop where the caller has given up waiting."""
        for key, function in self.calls:
            try:
                self.outcomes[key] = function()
            except Exception as error:  # The caller decides what an error of one call means.
                self.outcomes[key] = error
            with self._moving_on:
                if self.is_given_up:
                    break
                self.position += 1
        self._running.release()

    def wait(self, longest_s: float) -> bool:
        """Wait for the end; whether it came."""
        if not self._running.acquire(timeout=longest_s):
            return False
        self._running.release()
        return True

    def give_up(self, position: int) -> bool:
        """Make no call after this one, if it is still the one that is being made."""
        with self._moving_on:
            self.is_given_up = self.position == position
        return self.is_given_up


@dataclass(slots=True)
class Guard(Generic[Key, Result]):
    """Makes batches of calls in a worker thread; a call that hangs costs that thread, not the caller.

    Attributes:
        timeout_s: How long one call may take.
        clock: Monotonic nanoseconds.
    """

    timeout_s: float
    clock: Callable[[], int]
    _batches: queue.SimpleQueue[_Batch[Key, Result]] | None = None
    _blocked: dict[Key, tuple[_Batch[Key, Result], int]] = field(default_factory=dict)

    def run(self, calls: Mapping[Key, Callable[[], Result]]) -> dict[Key, Result | Exception]:
        """Results by key; where a call failed its error, where it hangs a `BlockedError`.

        A key whose earlier call still hangs is not called again before that one returns.
        """
        self._release()
        outcomes: dict[Key, Result | Exception] = {
            key: BlockedError(f"no answer for {(self.clock() - since_ns) / 1e9:.0f} s")
            for key, (_, since_ns) in self._blocked.items()
            if key in calls
        }
        pending = [(key, function) for key, function in calls.items() if key not in outcomes]
        while pending:
            batch = _Batch(pending)
            self._worker().put(batch)
            started_ns = self._await(batch)
            outcomes.update(batch.outcomes)
            if started_ns is None:
                break
            key = pending[batch.position][0]
            self._blocked[key] = (batch, started_ns)
            outcomes[key] = BlockedError(f"no answer for {self.timeout_s:g} s")
            pending = pending[batch.position + 1 :]
        return outcomes

    @property
    def is_blocked(self) -> bool:
        """Whether some call still hangs."""
        if self._blocked:
            self._release()
        return bool(self._blocked)

    def _await(self, batch: _Batch[Key, Result]) -> int | None:
        """Wait for a batch's end; where one of its calls hangs, since when."""
        while True:
            position, started_ns = batch.position, self.clock()
            if batch.wait(self.timeout_s):
                return None
            if batch.give_up(position):
                self._batches = None
                return started_ns

    def _release(self) -> None:
        for key in [key for key, (batch, _) in self._blocked.items() if batch.has_ended]:
            del self._blocked[key]

    def _worker(self) -> queue.SimpleQueue[_Batch[Key, Result]]:
        if self._batches is None:
            batches: queue.SimpleQueue[_Batch[Key, Result]] = queue.SimpleQueue()
            threading.Thread(target=_work, args=(batches,), name="device-reader", daemon=True).start()
            self._batches = batches
        return self._batches


def _work(batches: queue.SimpleQueue[_Batch[Key, Result]]) -> None:
    while True:
        batch = batches.get()
        batch.run()
        if batch.is_given_up:
            return
