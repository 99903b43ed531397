"""A progress bar on standard error for work that takes more than a second on a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

DELAY_SECONDS = 1.0


class ProgressBar:
    """Shows (done, total) when called, once the work has lasted long enough to be worth it.

    Example:
        >>> with ProgressBar("Writing train.pftrace") as progress:
        ...     export_perfetto(profile, path, progress=progress)
    """

    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(title, total=None)
        self._is_terminal = sys.stderr.isatty()
        self._started = False
        self._began = 0.0

    def __enter__(self) -> ProgressBar:
        self._began = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._started:
            self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        """Tell how far the work has come."""
        if not self._is_terminal:
            return
        if not self._started and time.monotonic() - self._began > DELAY_SECONDS:
            self._bar.start()
            self._started = True
        if self._started:
            self._bar.update(self._task, completed=done, total=total)
