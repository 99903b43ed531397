"""Different rows are those that NumPy finds by sorting."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from neuron_tools.profile.importers.distinct import distinct_rows

NUMBERS = st.one_of(st.integers(-2, 2), st.integers(-(1 << 63), (1 << 63) - 1))


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=50), st.integers(1, 3))
def test_rows_and_places_equal_numpys(rows: list[tuple[int, int, int]], width: int) -> None:
    table = np.array(rows, np.int64)[:, :width]
    different, places = distinct_rows(*table.T)
    expected, expected_places = np.unique(table, axis=0, return_inverse=True)
    assert different.tolist() == expected.tolist()
    assert places.tolist() == expected_places.reshape(-1).tolist()


def test_no_rows_have_no_different_ones() -> None:
    different, places = distinct_rows(np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert different.shape == (0, 2)
    assert len(places) == 0
