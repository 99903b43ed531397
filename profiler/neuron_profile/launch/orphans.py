"""Processes that end with the one that started them, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def ended_with_parent() -> Callable[[], None]:
    """What a child calls before it becomes its program (`preexec_fn`): it is killed when this thread ends.

    The kernel does it (prctl(2)), so that it holds for a parent that is killed, too. Elsewhere than on Linux
    the child lives on.
    """
    parent = os.getpid()
    libc = ctypes.CDLL(None)

    def ask_kernel() -> None:
        if hasattr(libc, "prctl"):
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(128 + signal.SIGKILL)

    return ask_kernel
