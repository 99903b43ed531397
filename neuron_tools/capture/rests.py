"""Says in the log of a process that others end when all that it recorded so far stands there.

Ray ends its workers from outside, and `multiprocessing` the daemons that a process spawned (one that saves
checkpoints, say), without Python's own end, so that no function registered for it runs. A process that was at
rest by then has left out nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import PurePath

SECONDS = 0.05
"""Short against the time that Ray takes to notice that a training loop has ended."""
_WORKERS = PurePath("ray/_private/workers/default_worker.py")
_SPAWNED = "--multiprocessing-fork"


def is_ended_by_others(command: Sequence[str]) -> bool:
    """Whether a process is a worker of Ray's, or one that `multiprocessing` spawned.

    Args:
        command: With which it was started.
    """
    return _SPAWNED in command or any(PurePath(word).parts[-4:] == _WORKERS.parts for word in command)


class Rests(threading.Thread):
    """Tells of each rest once: of the first time in which no record was made for `seconds`.

    Args:
        count: Records made so far.
        tell: Called with that number.
    """

    def __init__(
        self, count: Callable[[], int], tell: Callable[[int], None], seconds: float = SECONDS
    ) -> None:
        super().__init__(name="neuron-rests", daemon=True)
        self._count, self._tell, self._seconds = count, tell, seconds
        self._ended = threading.Event()
        self.start()

    def run(self) -> None:
        """Look until `end`."""
        before, told = -1, -1
        while not self._ended.wait(self._seconds):
            count = self._count()
            if count == before != told:
                self._tell(count)
                told = count
            before = count

    def end(self) -> None:
        """Look no more."""
        self._ended.set()
        self.join()
