"""Results that are computed once and kept, whoever asks first: also by several threads at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

Kept = TypeVar("Kept")


class KeptResults:
    """Results by key; each is computed once, and those who ask for it meanwhile wait."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._turns: dict[Hashable, Lock] = {}
        self._results: dict[Hashable, Any] = {}

    def get(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """The result of a key: what `make` returned when it was first called for it.

        Where `make` raises, nothing is kept, and the next who asks or waits calls its own.
        """
        with self._lock:
            turn = self._turns.setdefault(key, Lock())
        with turn:
            if key not in self._results:
                self._results[key] = make()
            result: Kept = self._results[key]
        return result

    def known(self, key: Hashable) -> Any:
        """The result of a key, or None where it is not computed yet."""
        return self._results.get(key)
