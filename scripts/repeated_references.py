"""References that a public test computes again from equal inputs, for their shapes alone: computed once."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

_REPEATED = ("_golden_ref_via_torch",)
"""Functions of nki-library's test modules that return a reference's arrays by name."""


def install(modules: Iterable[ModuleType]) -> None:
    """Let these functions give a second call with the same inputs what the first one computed.

    Args:
        modules: Test modules that were imported.
    """
    for module in modules:
        for name in _REPEATED:
            if callable(getattr(module, name, None)):
                setattr(module, name, once_again(getattr(module, name)))


def once_again(compute: Callable[..., Mapping[str, Any]]) -> Callable[..., dict[str, Any]]:
    """A function whose last results are given out once more, then forgotten, as they are large.

    Args:
        compute: A function of its arguments' values alone.
    """
    last: dict[bytes, dict[str, Any]] = {}

    @functools.wraps(compute)
    def computed(*arguments: Any, **named: Any) -> dict[str, Any]:
        key = digest((arguments, named))
        found = last.pop(key, None)
        last.clear()
        if found is not None:
            return found
        results = dict(compute(*arguments, **named))
        last[key] = dict(results)  # the caller's own may change
        return results

    return computed


def digest(value: object) -> bytes:
    """A digest of a value, of arrays down to their last byte.

    Args:
        value: Arrays, in sequences and mappings, and what `repr` tells apart.
    """
    state = hashlib.sha1(usedforsecurity=False)
    _add(state, value)
    return state.digest()


def _add(state: Any, value: object) -> None:
    if isinstance(value, np.ndarray):
        state.update(f"{value.dtype} {value.shape}".encode())
        state.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8))
    elif isinstance(value, Mapping):
        for name, item in value.items():
            state.update(repr(name).encode())
            _add(state, item)
    elif isinstance(value, (list, tuple)):
        state.update(f"{len(value)}".encode())
        for item in value:
            _add(state, item)
    else:
        state.update(repr(value).encode())
