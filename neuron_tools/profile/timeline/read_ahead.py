"""Has the system read a file into its cache while a user looks at what was drawn first."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

PAUSE_S = 0.1  # commands that draw once have ended by then
STEP_BYTES = 1 << 17  # the system reads no more at once, whatever it is asked for
FEWEST_BYTES = 1 << 23
MOST_OF_MEMORY = 0.5  # of what is available: a larger file would push out what others need


class ReadAhead:
    """Reads a file into the system's cache, once, in a thread of its own. It takes no memory of the process.

    Args:
        path: The file.
        size: Its length in bytes.
        first: Stretches to begin with, first bytes and those behind the last ones.
    """

    def __init__(self, path: Path, size: int, first: Sequence[tuple[int, int]] = ()) -> None:
        self._path, self._size, self._first = path, size, first
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Begin to read soon, unless that was done before, or the file is small or too large."""
        if self._thread is not None or self._size < FEWEST_BYTES:
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="read-ahead", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        threading.Event().wait(PAUSE_S)
        if self._size > MOST_OF_MEMORY * available_bytes() or not hasattr(os, "posix_fadvise"):
            return
        try:
            with self._path.open("rb") as file:
                for first, last in (*self._first, (0, self._size)):
                    for begin in range(first, last, STEP_BYTES):
                        length = min(STEP_BYTES, last - begin)
                        os.posix_fadvise(file.fileno(), begin, length, os.POSIX_FADV_WILLNEED)
        except OSError:
            pass  # what is looked at is read then


def available_bytes() -> int:
    """Memory that the system can give away; 0 where it does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)
