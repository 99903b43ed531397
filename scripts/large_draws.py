"""Random draws of public tests: large arrays in files, and single numbers without NumPy's cost per call.

A test that draws a billion numbers and keeps them as bfloat16 needs four times their final size for a
moment. The drawn array lies in a file without a name here, which the system writes out where memory is
short. A test that sets one element of each block in a loop draws single integers millions of times, which
takes NumPy microseconds each. Numbers and their order are NumPy's own: all comes from the same stream.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from neuron_tools.arrays import Array

SMALLEST_BYTES = 1 << 28
"""Smaller arrays are drawn as always."""
_PIECE = 1 << 22
_new_generator = np.random.default_rng


def install() -> None:
    """Let NumPy's generators draw large arrays into files, in this process."""
    for name in ("rand", "randn"):
        setattr(np.random, name, _by_extents(getattr(np.random, name)))
    for name in ("normal", "uniform"):
        setattr(np.random, name, _by_parameters(getattr(np.random, name)))
    np.random.default_rng = default_rng
    raw = np.random.get_bit_generator().random_raw  # type: ignore[attr-defined]  # NumPy documents it
    np.random.randint = _integers(np.random.randint, raw)
    np.random.choice = _choices(np.random.choice, np.random.randint)


class FileGenerator(np.random.Generator):
    """NumPy's generator, whose large arrays lie in files."""

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Normal draws, as NumPy's."""
        return _by_parameters(super().normal)(loc, scale, size)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Uniform draws, as NumPy's."""
        return _by_parameters(super().uniform)(low, high, size)


def default_rng(seed: Any = None) -> np.random.Generator:
    """NumPy's `default_rng`, with large arrays in files."""
    made = _new_generator(seed)
    return made if made is seed else FileGenerator(made.bit_generator)


def _by_extents(draw: Callable[..., Any]) -> Callable[..., Any]:
    """A function like `np.random.randn`."""

    def drawn(*extents: int) -> Any:
        return _in_file(extents, draw) if _is_large(extents) else draw(*extents)

    return drawn


def _by_parameters(draw: Callable[..., Any]) -> Callable[..., Any]:
    """A function like `np.random.normal`: two parameters and a shape."""

    def drawn(*arguments: Any, **keywords: Any) -> Any:
        given = (*arguments[:2], *(value for name, value in keywords.items() if name != "size"))
        size = arguments[2] if len(arguments) > 2 else keywords.get("size")
        shape = () if size is None else tuple(size) if np.iterable(size) else (size,)
        if any(np.ndim(parameter) for parameter in given) or not _is_large(shape):
            return draw(*arguments, **keywords)
        return _in_file(shape, lambda count: draw(*arguments[:2], **{**keywords, "size": count}))

    return drawn


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


def _is_large(shape: tuple[int, ...]) -> bool:
    return np.dtype(np.float64).itemsize * prod(shape) >= SMALLEST_BYTES


def _in_file(shape: tuple[int, ...], draw: Callable[[int], Array]) -> Array:
    """A float64 array in a file, filled by calls of `draw(count)`."""
    with tempfile.TemporaryFile() as file:
        array = np.asarray(np.memmap(file, np.float64, "w+", shape=shape))
    row = array.reshape(-1)
    for start in range(0, row.size, _PIECE):
        part = row[start : start + _PIECE]
        part[...] = draw(part.size)
    return array
