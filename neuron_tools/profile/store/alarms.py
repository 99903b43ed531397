"""Calls at a later time, all by one thread: one for each query would cost more than most queries."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from time import monotonic

_NEVER_S = 3600.0


class Alarm:
    """A call that is to come; `cancel` it where it must not."""

    __slots__ = ("at_s", "call")

    def __init__(self, at_s: float, call: Callable[[], None]) -> None:
        self.at_s = at_s
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Never make the call, unless it is being made."""
        self.call = None


class Alarms:
    """Makes calls when their time has come, in a thread that the first one starts."""

    def __init__(self) -> None:
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """Begin anew: a process that was forked has neither the thread nor the calls."""
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, Alarm]] = []
        self._numbers = count()
        self._is_running = False

    def after(self, delay_s: float, call: Callable[[], None]) -> Alarm:
        """Make a call after so many seconds; it must not take long, nor raise."""
        alarm = Alarm(monotonic() + delay_s, call)
        with self._changed:
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="alarms", daemon=True).start()
            is_first = not self._waiting or alarm.at_s < self._waiting[0][0]
            heappush(self._waiting, (alarm.at_s, next(self._numbers), alarm))
            if is_first:
                self._changed.notify()
        return alarm

    def _run(self) -> None:
        while True:
            with self._changed:
                self._drop_cancelled()
                left_s = self._waiting[0][0] - monotonic() if self._waiting else _NEVER_S
                if left_s > 0:
                    self._changed.wait(left_s)
                    continue
                call = heappop(self._waiting)[2].call
            if call is not None:
                call()

    def _drop_cancelled(self) -> None:
        while self._waiting and self._waiting[0][2].call is None:
            heappop(self._waiting)


ALARMS = Alarms()
"""Those of this process."""
