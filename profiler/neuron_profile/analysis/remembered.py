"""What several analyses of one profile need alike, computed once while they are made one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from neuron_tools.profile.reader import Profile

Result = TypeVar("Result")
_KEPT: WeakKeyDictionary[Profile, dict[Callable[..., Any], Any]] = WeakKeyDictionary()


@contextmanager
def remembering(profile: Profile) -> Iterator[None]:
    """Keep the results of functions that are `remembered`, in memory, until the outermost block ends."""
    if profile in _KEPT:
        yield
        return
    _KEPT[profile] = {}
    try:
        yield
    finally:
        _KEPT.pop(profile, None)


def remembered(function: Callable[[Profile], Result]) -> Callable[[Profile], Result]:
    """Compute a function of a profile once within `remembering`, and each time outside of it."""

    @wraps(function)
    def once(profile: Profile) -> Result:
        kept = _KEPT.get(profile)
        if kept is None:
            return function(profile)
        if function not in kept:
            kept[function] = function(profile)
        result: Result = kept[function]
        return result

    return once
