"""What a mask chooses is what `np.where` gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from neuron_tools.nki.selected import selected

RANDOM = np.random.default_rng(2)
VALUES = RANDOM.standard_normal((4, 3, 5)).astype(np.float32)
CASES: dict[str, tuple[Any, Any, Any]] = {
    "a number": (VALUES > 0, VALUES, -1e30),
    "one number of a partition": (VALUES > 0, VALUES, VALUES[:, :1, :1]),
    "as many": (VALUES > 0, VALUES, VALUES * 2),
    "a mask of all partitions": (VALUES[:1] > 0, VALUES, 0.5),
    "turned": ((VALUES > 0).swapaxes(1, 2), VALUES.swapaxes(1, 2), np.inf),
    "one partition": (VALUES[:1] > 0, VALUES[:1], VALUES[:1, :1, :1]),
    "one element": (VALUES[:, :1, :1] > 0, VALUES[:, :1, :1], VALUES[:, 1:2, :1]),
}


@pytest.mark.parametrize(("chosen", "values", "others"), CASES.values(), ids=CASES)
def test_it_is_as_numpys(chosen: Any, values: Any, others: Any) -> None:
    found = selected(chosen, values, others)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.where(chosen, values, np.asarray(others, np.float32)))
