"""Processes that end with the one that started them, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def ended_with_parent() -> Callable[[], None]:
    """Have the kernel kill a child when the thread that starts it ends (prctl(2)), also by being killed.

    Elsewhere than on Linux the child lives on.

    Returns:
        What the child calls before it becomes its program (`preexec_fn`).
    """
    parent = os.getpid()
    libc = ctypes.CDLL(None)

    def ask_kernel() -> None:
        if hasattr(libc, "prctl"):
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(128 + signal.SIGKILL)

    return ask_kernel
