"""Random draws of the public kernels' tests: NumPy's own numbers, large arrays of them in a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from scripts import large_draws

DRAWS: dict[str, Callable[[], Any]] = {
    "randn": lambda: np.random.randn(5, 7),
    "rand": lambda: np.random.rand(11),
    "normal by name": lambda: np.random.normal(loc=0.0, scale=2.0, size=(3, 9)),
    "normal by place": lambda: np.random.normal(0.0, 2.0, 33),
    "uniform": lambda: np.random.uniform(-1.0, 1.0, (2, 8)),
    "a parameter per element": lambda: np.random.normal(np.arange(20.0), 1.0, 20),
    "one number": lambda: np.random.normal(),
    "single integers": lambda: [np.random.randint(low, low + 2 + 3 * low) for low in range(40)],
    "an integer of one": lambda: np.random.randint(4, 5),
    "one choice": lambda: [np.random.choice([-1, 1, 7]) for _ in range(40)],
    "choices": lambda: np.random.choice([-1, 1], size=9),
    "a weighted choice": lambda: np.random.choice([-1, 1], p=[0.2, 0.8]),
    "generator's normal": lambda: np.random.default_rng(0).normal(0.0, 0.3, (4, 9)),
    "generator's uniform": lambda: np.random.default_rng(0).uniform(-1.0, 1.0, size=(5, 5)),
}


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets ten numbers be a large array, once it is called; NumPy's functions come back after the test."""
    monkeypatch.setattr(large_draws, "SMALLEST_BYTES", 80)
    monkeypatch.setattr(large_draws, "_PIECE", 8)
    for name in ("rand", "randn", "normal", "uniform", "default_rng", "randint", "choice"):
        monkeypatch.setattr(np.random, name, getattr(np.random, name))
    return large_draws.install


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_numbers_and_what_follows_them_are_numpys(
    draw: Callable[[], Any], install: Callable[[], None]
) -> None:
    np.random.seed(3)
    expected, next_expected = draw(), np.random.randint(0, 100, 4)
    install()
    np.random.seed(3)
    np.testing.assert_array_equal(draw(), expected)
    np.testing.assert_array_equal(np.random.randint(0, 100, 4), next_expected)


def test_only_large_arrays_lie_in_a_file(install: Callable[[], None]) -> None:
    install()
    assert isinstance(np.random.randn(100).base, np.memmap)
    assert not isinstance(np.random.randn(9).base, np.memmap)
