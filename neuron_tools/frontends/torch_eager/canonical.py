"""Signatures without what changes from step to step: the factors of an optimizer are not another program.

Adam's step size and a scheduled learning rate are new floating-point arguments in each step. Time depends on
such a number only through what is special about it: 0, 1, small whole and half numbers, infinities.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import torch

_LARGEST_SPECIAL = 16.0


def canonical_arguments(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with each floating-point number replaced by one that stands for its kind."""
    return tuple(_canonical(entry) for entry in arguments)


def signature_key(name: str, arguments: tuple[Any, ...]) -> Hashable:
    """Equal for two signatures of one operator that lower to the same module.

    PyTorch's default type is part of it: quotients and roots of integers have it.

    Args:
        name: Qualified operator name.
        arguments: As the device passes them.
    """
    return (name, str(torch.get_default_dtype()), _hashable(canonical_arguments(arguments)))


def canonical_number(number: float) -> float:
    """`number` itself where it is special, else a number of the same sign on the same side of 1/2 and 1."""
    if not math.isfinite(number) or (abs(number) <= _LARGEST_SPECIAL and (2 * number).is_integer()):
        return number
    magnitude = abs(number)
    kind = 0.3 if magnitude < 0.5 else 0.7 if magnitude < 1 else 1.7
    return math.copysign(kind, number)


def _canonical(entry: Any) -> Any:
    if isinstance(entry, float):
        return canonical_number(entry)
    if isinstance(entry, tuple) and entry and entry[0] == "list":
        return ("list", canonical_arguments(entry[1]))
    return entry


def _hashable(entry: Any) -> Hashable:
    """Tuples all the way down, numbers told apart by type (True is not 1, nan equals nan)."""
    if isinstance(entry, (tuple, list)):
        return tuple(_hashable(item) for item in entry)
    return (type(entry).__name__, repr(entry)) if isinstance(entry, (bool, float, complex)) else entry
