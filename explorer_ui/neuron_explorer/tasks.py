"""Imports and exports that the user began: they run in the background until they end or are cancelled."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from threading import Lock
from typing import Any

from neuron_explorer.jobs import CancelledError, Job, Progress
from neuron_tools.frozen import frozen

KEPT = 20


@frozen
class Task:
    """A job with a name that the user knows.

    Attributes:
        kind: "import" or "export".
        title: What it makes: "train.pftrace".
    """

    id: str
    kind: str
    title: str
    job: Job

    @property
    def state(self) -> str:
        """ "running", "done", "cancelled" or "failed"."""
        if not self.job.is_done:
            return "running"
        if self.job.error is None:
            return "done"
        return "cancelled" if isinstance(self.job.error, CancelledError) else "failed"


class Tasks:
    """The tasks of one running server, the newest first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tasks: dict[str, Task] = {}
        self._numbers = count(1)

    def start(self, kind: str, title: str, function: Callable[[Progress], Any]) -> Task:
        """Begin a task."""
        with self._lock:
            task = Task(str(next(self._numbers)), kind, title, Job(function, f"{kind} {title}"))
            self._tasks[task.id] = task
            done = [key for key, old in self._tasks.items() if old.state != "running"]
            for key in done[: max(0, len(self._tasks) - KEPT)]:
                del self._tasks[key]
        return task

    def get(self, wanted: str) -> Task | None:
        """A task; None if there is none of that id."""
        return self._tasks.get(wanted)

    def all(self, kind: str) -> list[Task]:
        """Tasks of a kind, the newest first."""
        with self._lock:
            return [task for task in reversed(self._tasks.values()) if task.kind == kind]


def told(progress: Progress, text: str) -> Callable[[int, int], None]:
    """What imports and exports call with (done, in all): it passes on how far they are, and stops them.

    Raises:
        CancelledError: From the function, once the user has stopped the work.
    """
    progress.text = text

    def tell(done: int, total: int) -> None:
        progress.check()
        progress.fraction = done / total if total else None

    return tell
