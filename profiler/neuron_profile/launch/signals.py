"""Signals as something to wait for: they wake the wait and are handed over in order."""

from __future__ import annotations

import os
import select
import signal
from types import FrameType, TracebackType

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
FORWARDED = (*STOPS, signal.SIGUSR1, signal.SIGUSR2)


class SignalQueue:
    """While it is entered, the forwarded signals and SIGCHLD do nothing but arrive here.

    Works in the main thread only, as Python's signal handlers do.
    """

    def __enter__(self) -> SignalQueue:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._previous_descriptor = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._previous = {number: signal.signal(number, _ignore) for number in (*FORWARDED, signal.SIGCHLD)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._previous_descriptor)
        os.close(self._reader)
        os.close(self._writer)

    def wait(self, timeout_seconds: float) -> list[signal.Signals]:
        """Signals that have arrived, after at most the given time."""
        waiting = select.poll()  # unlike select, it takes any descriptor: a busy process may have thousands
        waiting.register(self._reader, select.POLLIN)
        if not waiting.poll(timeout_seconds * 1000):
            return []
        return [signal.Signals(number) for number in os.read(self._reader, 4096)]


def _ignore(number: int, frame: FrameType | None) -> None:
    """A handler in Python, so that the signal reaches the wake-up pipe and is not inherited as ignored."""
