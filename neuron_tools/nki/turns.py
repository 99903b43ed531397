"""Threads of which one runs at a time: the cores of a rank, and the ranks of a job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context

from neuron_tools.nki.errors import TracingError

Condition = Callable[[], bool]
"""Whether what somebody waits for holds."""


class Turns:
    """Threads that take turns in the order of their numbers; who has ended is passed over.

    Args:
        count: How many take turns: 0, 1, ...
        failure: What the others are told when one fails.
        first: Whose turn it is first.
    """

    def __init__(self, count: int, failure: str, first: int = 0) -> None:
        self.count = count
        self._failure = failure
        self._failures: list[BaseException] = []
        self._first = first
        self._ended: set[int] = set()
        self._awaited: dict[int, Condition] = {}
        self._gates = [threading.Lock() for _ in range(count)]  # each held by who waits for its turn

    def run_all(self, work: Callable[[int], None]) -> None:
        """Do the work of every number, each in a thread of its own.

        Raises:
            BaseException: What the first that failed raised.
        """
        threads = [
            threading.Thread(target=copy_context().run, args=(self._run, work, number))
            for number in range(self.count)
        ]
        for gate in self._gates:
            gate.acquire()
        for thread in threads:
            thread.start()
        self._gates[self._first].release()
        for thread in threads:
            thread.join()
        if self._failures:
            raise self._failures[0]

    def switch(self, number: int, awaited: Condition | None = None) -> None:
        """Let the others run until it is this one's turn again.

        Args:
            number: Whose turn ends.
            awaited: It gets no turn before this holds, unless nobody else can go on.

        Raises:
            TracingError: Another one failed.
        """
        if awaited is not None:
            self._awaited[number] = awaited
        following = self._following(number)
        if following != number:
            self._gates[following].release()
            self._gates[number].acquire()
        self._awaited.pop(number, None)
        if self._failures:
            raise TracingError(self._failure)

    def _run(self, work: Callable[[int], None], number: int) -> None:
        self._gates[number].acquire()
        try:
            if not self._failures:
                work(number)
        except BaseException as error:
            self._failures.append(error)
        self._ended.add(number)
        if len(self._ended) < self.count:
            self._gates[self._following(number)].release()

    def _following(self, number: int) -> int:
        """Whose turn is next: the next one that can go on, or else that has not ended."""
        order = ((number + step) % self.count for step in range(1, self.count + 1))
        left = [other for other in order if other not in self._ended]
        return next((other for other in left if self._can_go_on(other)), left[0])

    def _can_go_on(self, number: int) -> bool:
        awaited = self._awaited.get(number)
        return awaited is None or bool(self._failures) or awaited()
