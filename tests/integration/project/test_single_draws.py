"""Single random integers of the public kernels' tests are NumPy's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from scripts import single_draws

DRAWS: dict[str, Callable[[], Any]] = {
    "single integers": lambda: [np.random.randint(low, low + 2 + 3 * low) for low in range(40)],
    "an integer of one": lambda: np.random.randint(4, 5),
    "one choice": lambda: [np.random.choice([-1, 1, 7]) for _ in range(40)],
    "choices": lambda: np.random.choice([-1, 1], size=9),
    "a weighted choice": lambda: np.random.choice([-1, 1], p=[0.2, 0.8]),
}


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Installs the fast draws once it is called; NumPy's functions come back after the test."""
    for name in ("randint", "choice"):
        monkeypatch.setattr(np.random, name, getattr(np.random, name))
    return single_draws.install


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
