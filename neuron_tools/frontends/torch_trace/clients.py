"""Threads that call traced models: each waits in virtual time, so that their requests overlap as on the chip.

The host's clock is one for the whole process. A thread whose results are not there yet would move it for all
others, and the next request would come too late. So a thread first lets the others go on until they wait as
well; then the one whose results come first moves the clock.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

PATIENCE_S = 0.5
"""After so long a thread that neither calls nor waits is taken to be at other work."""


@dataclass
class Clients:
    """The threads of a process that call traced models.

    Attributes:
        patience_s: How long threads that do neither are waited for.
    """

    patience_s: float = PATIENCE_S
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _calling: set[int] = field(default_factory=set)
    _elsewhere: dict[int, threading.Thread] = field(default_factory=dict)
    _waiting: dict[int, int] = field(default_factory=dict)

    def enter(self) -> bool:
        """Tell that the calling thread calls a model; returns whether others do so too."""
        me = threading.get_ident()
        with self._changed:
            self._elsewhere.pop(me, None)
            self._calling.add(me)
            return len(self._calling) + len(self._elsewhere) + len(self._waiting) > 1

    def leave(self) -> None:
        """Tell that the call is over."""
        me = threading.get_ident()
        with self._changed:
            self._calling.discard(me)
            self._elsewhere[me] = threading.current_thread()
            self._changed.notify_all()

    def wait(self, end_ns: int) -> None:
        """Come back when the calling thread is the next one that results come for.

        Args:
            end_ns: When they come.
        """
        me = threading.get_ident()
        with self._changed:
            self._calling.discard(me)
            self._waiting[me] = end_ns
            self._changed.notify_all()
            while not self._is_next(me):
                if not self._changed.wait(self.patience_s) and not self._calling:
                    self._elsewhere.clear()
                    self._changed.notify_all()
            del self._waiting[me]
            self._calling.add(me)

    def _is_next(self, me: int) -> bool:
        for number in [number for number, thread in self._elsewhere.items() if not thread.is_alive()]:
            del self._elsewhere[number]
        first = min(self._waiting, key=lambda number: (self._waiting[number], number))
        return not self._calling and not self._elsewhere and first == me


CLIENTS = Clients()
