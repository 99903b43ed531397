"""Numbers for what a recording names again and again: source stacks, texts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")


class Numbering(Generic[Key]):
    """Gives each distinct key a number from 1 on. Safe to use from several threads.

    Args:
        on_new: Called once for each new key, before its number is given: number, key.
    """

    def __init__(self, on_new: Callable[[int, Key], None]) -> None:
        self._on_new = on_new
        self._numbers: dict[Key, int] = {}
        self._lock = threading.Lock()

    def number(self, key: Key) -> int:
        """The key's number."""
        number = self._numbers.get(key)
        if number is None:
            with self._lock:
                number = self._numbers.get(key)
                if number is None:
                    number = len(self._numbers) + 1
                    self._on_new(number, key)
                    self._numbers[key] = number
        return number
