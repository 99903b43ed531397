"""Results kept per open profile: computed once, by the first request, while others wait for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from neuron_tools.profile.reader import Profile

Result = TypeVar("Result")


class Memo:
    """Results by profile and key; forgotten with the profile."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._entries: WeakKeyDictionary[Profile, dict[Hashable, _Entry]] = WeakKeyDictionary()

    def get(self, profile: Profile, key: Hashable, compute: Callable[[], Result]) -> Result:
        """The result of `compute`, or that of an earlier call with this profile and key.

        What `compute` raises is raised, and nothing is kept.
        """
        with self._lock:
            entry = self._entries.setdefault(profile, {}).setdefault(key, _Entry())
        with entry.lock:
            if not entry.done:
                entry.value = compute()
                entry.done = True
            result: Result = entry.value
        return result


class _Entry:
    def __init__(self) -> None:
        self.lock = Lock()
        self.done = False
        self.value: Any = None
