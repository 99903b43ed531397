"""How far computed numbers are from expected ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def largest_difference(found: Sequence[Any], expected: Sequence[Any]) -> float:
    """The largest difference between elements of arrays.

    Args:
        found, expected: Arrays of numbers, in the same order.

    Returns:
        It, relative to the largest expected magnitude of its array; infinite where shapes differ, or where
        one has a number and the other has none.
    """
    if [np.shape(each) for each in found] != [np.shape(each) for each in expected]:
        return float("inf")
    return max((_of_one(ours, theirs) for ours, theirs in zip(found, expected, strict=True)), default=0.0)


def _of_one(found: Any, expected: Any) -> float:
    ours, theirs = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    with np.errstate(invalid="ignore"):
        distance = np.where(same, 0.0, np.abs(ours - theirs))
    scale = float(np.max(np.abs(theirs[np.isfinite(theirs)]), initial=0.0)) or 1.0
    largest = float(np.max(distance, initial=0.0)) / scale
    return largest if np.isfinite(largest) else float("inf")
