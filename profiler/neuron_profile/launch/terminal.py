"""The controlling terminal, as far as a program that starts a command in the foreground needs it."""

from __future__ import annotations

import os
import signal


class Terminal:
    """Lends the terminal's foreground to another process group and takes it back.

    Does nothing where standard input is no terminal, or where we run in the background ourselves.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        try:
            self._ours = os.tcgetpgrp(descriptor) == os.getpgrp()
        except OSError:
            self._ours = False

    def lend(self, group: int) -> None:
        """Put a process group into the foreground."""
        if self._ours:
            self._set_foreground(group)

    def take_back(self) -> None:
        """Put our own group into the foreground again."""
        self.lend(os.getpgrp())

    def _set_foreground(self, group: int) -> None:
        previous = signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # else a background group is stopped here
        try:
            os.tcsetpgrp(self._descriptor, group)
        except OSError:
            pass  # the group has gone, or the terminal has
        finally:
            signal.signal(signal.SIGTTOU, previous)
