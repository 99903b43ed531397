"""Structure of kernels: slices, objects that kernels may pass around, and hints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from neuron_tools.nki.registers import VirtualRegister, register_value


class NKIObject:
    """Base of classes whose objects kernels pass around."""


def ds(start: Any, size: Any) -> slice:
    """The slice of `size` elements from `start`; `start` may be a register."""
    if isinstance(start, VirtualRegister):
        start = start.read()
    if not hasattr(start, "extents"):
        start = register_value(start)
    return slice(start, start + size)


@contextmanager
def no_reorder(*_arguments: Any, **_options: Any) -> Iterator[None]:
    """Keep the instructions of the block in order; the simulator never reorders an engine's."""
    yield
