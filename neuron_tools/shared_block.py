"""One state of the process that several blocks want at the same time, whichever of them ends first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager


class SharedBlock:
    """Makes blocks that have one state together: the first to begin sets it, the last to end takes it back.

    Blocks may lie in one another, and those of several threads may end in any order.

    Args:
        make: The state as a block of its own.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[object]]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._blocks = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """A block with the state."""
        with self._lock:
            if self._blocks == 0:
                self._stack.enter_context(self._make())
            self._blocks += 1
        try:
            yield
        finally:
            with self._lock:
                self._blocks -= 1
                if self._blocks == 0:
                    self._stack.close()
