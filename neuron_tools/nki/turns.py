"""Threads of which one runs at a time: the cores of a rank, and the ranks of a job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context

from neuron_tools.nki.errors import TracingError


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
        self._turn = first
        self._ended: set[int] = set()
        self._condition = threading.Condition()

    def run_all(self, work: Callable[[int], None]) -> None:
        """Do the work of every number, each in a thread of its own.

        Raises:
            BaseException: What the first that failed raised.
        """
        threads = [
            threading.Thread(target=copy_context().run, args=(self._run, work, number))
            for number in range(self.count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._failures:
            raise self._failures[0]

    def switch(self, number: int) -> None:
        """Let the others run until it is this one's turn again.

        Raises:
            TracingError: Another one failed.
        """
        self._hand_over(number)
        self._wait_turn(number)

    def _run(self, work: Callable[[int], None], number: int) -> None:
        try:
            self._wait_turn(number)
            work(number)
            with self._condition:
                self._ended.add(number)
            self._hand_over(number)
        except BaseException as error:
            with self._condition:
                self._failures.append(error)
                self._condition.notify_all()

    def _wait_turn(self, number: int) -> None:
        with self._condition:
            self._condition.wait_for(lambda: self._turn == number or self._failures)
            if self._failures:
                raise TracingError(self._failure)

    def _hand_over(self, number: int) -> None:
        """Let the next one run that has not ended."""
        with self._condition:
            for step in range(1, self.count + 1):
                other = (number + step) % self.count
                if other not in self._ended:
                    self._turn = other
                    break
            self._condition.notify_all()
