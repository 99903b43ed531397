"""Lets autograd's device threads finish before Python ends.

PyTorch computes a device's gradients on a thread of its own, which still drops Python objects for a moment
after `backward()` has returned. If the interpreter is being finalised by then, the thread is ended in the
middle of C++ code and the whole process aborts, after a script that had done its work.
"""

from __future__ import annotations

import time
from pathlib import Path

_THREADS = Path("/proc/self/task")
_THREAD_NAME = "pt_autograd_"
_POLL_SECONDS = 0.001
_LONGEST_SECONDS = 2.0
# A thread may be seen asleep between two locks: only a repeated sight counts.
_QUIET_POLLS = 3


def wait_for_autograd(threads: Path = _THREADS, longest_seconds: float = _LONGEST_SECONDS) -> bool:
    """Waits, with the GIL given away, until every autograd thread waits for work.

    Args:
        threads: The folder with one folder for each thread, as in Linux's `/proc`.
        longest_seconds: When to give up.

    Returns:
        Whether they all came to rest.
    """
    deadline = time.monotonic() + longest_seconds
    quiet = 0
    while _autograd_states(threads):
        quiet = 0 if _any_running(threads) else quiet + 1
        if quiet == _QUIET_POLLS:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _any_running(threads: Path) -> bool:
    return any(state != "S" for state in _autograd_states(threads))


def _autograd_states(threads: Path) -> list[str]:
    """The states of autograd's threads: "S" sleeps, "R" runs or would like to."""
    states = []
    try:
        for thread in threads.iterdir():
            name, _, rest = (thread / "stat").read_text().partition("(")[2].rpartition(")")
            if name.startswith(_THREAD_NAME):
                states.append(rest.split()[0])
    except OSError:
        # A thread that ended meanwhile, or a system without /proc.
        pass
    return states
