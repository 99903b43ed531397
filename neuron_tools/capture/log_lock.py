"""Tells whether a capture log is still in use: everybody who writes or reads one holds a shared lock on it.

The system gives a lock back when its holder ends, however it ends; so a log without a lock is one that
nobody will assemble.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class LogLock:
    """A shared lock on a log folder, held until `release` or the end of the process.

    Where the file system knows no locks, there is none, and nothing else changes.
    """

    def __init__(self, log_directory: Path) -> None:
        self._file: int | None = _open_folder(log_directory)
        if self._file is not None and not _lock(self._file, fcntl.LOCK_SH):
            self.release()

    def release(self) -> None:
        """Give the lock back. In a forked child: only close the child's part of it."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


def is_in_use(log_directory: Path) -> bool:
    """Whether a process that records or assembles this log is alive."""
    file = _open_folder(log_directory)
    if file is None:
        return False
    try:
        return not _lock(file, fcntl.LOCK_EX)
    finally:
        os.close(file)


def _open_folder(directory: Path) -> int | None:
    try:
        return os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None


def _lock(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return kind == fcntl.LOCK_EX  # no locks here: cannot be told, so it does not stand in the way
    return True
