"""Large random arrays of the public kernels' tests hold NumPy's own numbers."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scripts import drawn_in_blocks

SHAPE = (1025, 1024)


def in_place(array: Any) -> Any:
    array *= 2
    array += array
    array -= 1
    return array


USES: dict[str, Callable[[Any], Any]] = {
    "scaled": lambda rng: (rng.normal(size=SHAPE) * 0.3 + 0.1).astype(ml_dtypes.bfloat16),
    "normal": lambda rng: rng.normal(0.0, np.float64(0.7), SHAPE).astype(np.float32),
    "uniform": lambda rng: rng.uniform(-1.0, 0.5, SHAPE).astype(np.float32),
    "one dimension": lambda rng: rng.normal(size=1 << 20).astype(np.float16),
    "whole": lambda rng: np.clip(2 * rng.uniform(size=SHAPE), 0.1, 0.2),
    "methods": lambda rng: rng.normal(size=SHAPE).reshape(-1)[7:9],
    "elements": lambda rng: (1 - rng.normal(size=SHAPE))[3],
    "in place": lambda rng: in_place(rng.normal(size=SHAPE)),
    "small": lambda rng: rng.normal(size=(3, 4)),
    "single": lambda rng: rng.uniform(),
    "many scales": lambda rng: rng.normal(0.0, np.ones(SHAPE)),
}


@pytest.fixture
def module() -> Any:
    """A test module that imported NumPy."""
    made = ModuleType("made")
    made.np = np  # type: ignore[attr-defined]
    drawn_in_blocks.install([made])
    return made


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_numbers_and_what_follows_them_are_numpys(use: Callable[[Any], Any], module: Any) -> None:
    expected, found = np.random.default_rng(5), module.np.random.default_rng(5)
    np.testing.assert_array_equal(use(found), use(expected))
    np.testing.assert_array_equal(found.random(3), expected.random(3))


def test_an_array_that_is_used_later_and_twice_keeps_its_numbers(module: Any) -> None:
    expected, found = np.random.default_rng(5), module.np.random.default_rng(5)
    array, held = expected.normal(size=SHAPE), found.normal(size=SHAPE)
    assert found.random() == expected.random()
    for _ in range(2):
        np.testing.assert_array_equal(held.astype(np.float32), array.astype(np.float32))
    assert len(held) == len(array)


def test_other_names_are_numpys(module: Any) -> None:
    assert module.np.float32 is np.float32
    assert module.np.random.randint is np.random.randint
