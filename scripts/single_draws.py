"""Single random integers of public tests, without what NumPy takes for each call.

A test that sets one element of each block in a loop draws single integers millions of times. Numbers and
their order are NumPy's own: all comes from the same stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def install() -> None:
    """Let NumPy draw single integers fast in this process."""
    raw = np.random.get_bit_generator().random_raw  # type: ignore[attr-defined]  # NumPy documents it
    np.random.randint = _integers(np.random.randint, raw)
    np.random.choice = _choices(np.random.choice, np.random.randint)


def _integers(draw: Callable[..., Any], raw: Callable[[], int]) -> Callable[..., Any]:
    """`np.random.randint`; one integer is the first word of the stream that fits, as in NumPy."""

    def drawn(low: Any, high: Any = None, *size: Any, **options: Any) -> Any:
        if size or options or type(low) is not int or type(high) is not int or not 1 < high - low < 1 << 32:
            return draw(low, high, *size, **options)
        largest = high - low - 1
        mask = (1 << largest.bit_length()) - 1
        while (value := raw() & mask) > largest:
            pass
        return low + value

    return drawn


def _choices(draw: Callable[..., Any], integer: Callable[[int, int], int]) -> Callable[..., Any]:
    """`np.random.choice`; one of a list of integers is taken without an array of them."""

    def drawn(a: Any, *shape: Any, **options: Any) -> Any:
        if shape or options or type(a) is not list or not a or any(type(value) is not int for value in a):
            return draw(a, *shape, **options)
        return np.int64(a[integer(0, len(a))])

    return drawn
