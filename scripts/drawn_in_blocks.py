"""Large random arrays of public tests, without NumPy's arrays of doubles between the steps.

A test draws doubles, scales and shifts them, and takes them as another type. Here all steps are done for one
block after another, which stays in the processor's cache; numbers and their order are NumPy's own.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

_LEAST = 1 << 20
"""Elements from which an array is drawn in blocks."""
_BLOCK = 1 << 15
Doubles = npt.NDArray[np.float64]
Step = tuple[np.ufunc, float]


def install(modules: Iterable[ModuleType]) -> None:
    """Let generators that these modules make with `np.random.default_rng` draw in blocks.

    Args:
        modules: Test modules that were imported.
    """
    for module in modules:
        if vars(module).get("np") is np:
            module.np = NumPy()  # type: ignore[attr-defined]  # the name that the module imported


class NumPy:
    """NumPy as a test module sees it."""

    class _Random:
        @staticmethod
        def default_rng(*seed: Any) -> Generator:
            return Generator(np.random.default_rng(*seed))

        def __getattr__(self, name: str) -> Any:
            return getattr(np.random, name)

    random = _Random()

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class Generator:
    """A generator of NumPy that draws large arrays once it is known what becomes of them."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator
        self._last: Draw | None = None

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """As NumPy's."""
        return self._drawn("normal", "standard_normal", (loc, scale), (scale, loc), size)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """As NumPy's."""
        span = high - low if _are_numbers(low, high) else None
        return self._drawn("uniform", "random", (low, high), (span, low), size)

    def _drawn(self, name: str, unit: str, given: tuple[Any, Any], change: tuple[Any, Any], size: Any) -> Any:
        self._settle()
        shape = tuple(size) if isinstance(size, (tuple, list)) else (size or 0,)
        if not _are_numbers(*given, *shape) or math.prod(shape) < _LEAST:
            return getattr(self._generator, name)(*given, size)
        steps = (np.multiply, float(change[0])), (np.add, float(change[1]))
        self._last = Draw(self._generator, unit, shape)
        return Deferred(self._last, steps)

    def _settle(self) -> None:
        """Draw what the test still holds, before other numbers are drawn."""
        if self._last is not None:
            self._last.settle()
            self._last = None

    def __getattr__(self, name: str) -> Any:
        self._settle()
        return getattr(self._generator, name)


class Draw:
    """Random doubles of a generator: drawn once in their turn, and again from the same state."""

    def __init__(self, generator: np.random.Generator, unit: str, shape: tuple[int, ...]) -> None:
        self._generator, self._unit, self.shape = generator, unit, shape
        self._before: Any = None

    def settle(self) -> None:
        """Draw the numbers in their turn, if nothing has yet."""
        if self._before is None:
            for _ in self.blocks():
                pass

    def blocks(self) -> Iterable[tuple[slice, Doubles]]:
        """The numbers, block by block, each with its place; a block may be written."""
        bits = self._generator.bit_generator
        generator = self._generator
        if self._before is None:
            self._before = bits.state
        else:
            generator = np.random.Generator(type(bits)())
            generator.bit_generator.state = self._before
        draw, block = getattr(generator, self._unit), np.empty(_BLOCK)
        size = math.prod(self.shape)
        for start in range(0, size, _BLOCK):
            part = block[: min(_BLOCK, size - start)]
            draw(out=part)
            yield slice(start, start + part.size), part


class Deferred(NDArrayOperatorsMixin):
    """An array of random doubles, scaled and shifted, that is not drawn yet."""

    def __init__(self, draw: Draw, steps: tuple[Step, ...]) -> None:
        self._draw, self._steps = draw, steps

    def astype(self, dtype: Any, **options: Any) -> npt.NDArray[Any]:
        """The array, as another type."""
        made = np.empty(self._draw.shape, dtype)
        flat = made.reshape(-1)
        for place, block in self._draw.blocks():
            for function, number in self._steps:
                function(block, number, out=block)
            flat[place] = block.astype(dtype, **options)
        return made

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self.astype(np.float64 if dtype is None else dtype)

    def __array_ufunc__(self, function: np.ufunc, method: str, *given: Any, **options: Any) -> Any:
        """A product or a sum with a number is one more step; all else takes the array."""
        if options.get("out") == (self,):  # `array *= 2`
            del options["out"]
        first, second = (*given, None)[:2]
        number = second if first is self else first
        is_step = method == "__call__" and not options and function in (np.multiply, np.add)
        if is_step and _are_numbers(number):
            return Deferred(self._draw, (*self._steps, (function, float(number))))
        whole = [np.asarray(value) if isinstance(value, Deferred) else value for value in given]
        return getattr(function, method)(*whole, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # NumPy asks for its protocols
            raise AttributeError(name)
        return getattr(np.asarray(self), name)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __len__(self) -> int:
        return self._draw.shape[0]


def _are_numbers(*given: Any) -> bool:
    return all(isinstance(value, numbers.Real) for value in given)
