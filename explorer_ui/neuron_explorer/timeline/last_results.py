"""The last few results of what takes long: those who ask for the same wait for one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class LastResults(Generic[Result]):
    """Results by key, of which those asked for longest ago are dropped.

    Args:
        limit: What is kept, in all.
        size: What a result counts; each counts 1 without it. The last one stays, whatever it counts.
    """

    def __init__(self, limit: int, size: Callable[[Any], int] | None = None) -> None:
        self._limit = limit
        self._size = size or (lambda result: 1)
        self._lock = Lock()
        self._kept: OrderedDict[Hashable, Result] = OrderedDict()

    def of(self, key: Hashable, make: Callable[[], Result]) -> Result:
        """The result of a key, made where it is not kept; the next one waits until it is."""
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and sum(map(self._size, self._kept.values())) > self._limit:
                self._kept.popitem(last=False)
            return self._kept[key]
