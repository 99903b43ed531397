"""Python's integers in loops of the older dialect, whose compiler traces a loop's body once.

A counter or an address that the body adds to (`address += size`) has therefore the same value in every
iteration there. Here the body runs for each, so such variables begin every one as they began the first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from types import FrameType


def each_traced_once(numbers: Iterable[int], frame: FrameType) -> Iterator[int]:
    """Iterations of a loop; before each, the frame's integers are as they were before the first.

    Args:
        numbers: The loop's values.
        frame: Where the loop stands.
    """
    first: dict[str, int] | None = None
    for value in numbers:
        if first is None:
            first = {name: held for name, held in frame.f_locals.items() if type(held) is int}
        elif first:
            _restore(frame, first)
        yield value


def _restore(frame: FrameType, values: dict[str, int]) -> None:
    """Give those of a frame's variables their values again that changed and are still integers."""
    held = frame.f_locals
    changed = {name: value for name, value in values.items() if _differs(held.get(name), value)}
    if changed and frame.f_locals is not frame.f_globals:
        held.update(changed)
        _store(frame)


def _differs(held: object, value: int) -> bool:
    return type(held) is int and held != value


def _store(frame: FrameType) -> None:
    """Write a frame's `f_locals` back; from Python 3.13 on they are the variables themselves."""
    write_back = getattr(ctypes.pythonapi, "PyFrame_LocalsToFast", None)
    if write_back is not None:
        write_back(ctypes.py_object(frame), ctypes.c_int(0))
