"""The compiled sweep gives what the vectorised reference gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from neuron_profile.analysis.time.exposure_kernel import add_exposed
from neuron_tools.profile.exposure import Spans, exposed_ns

rows = st.lists(
    st.tuples(st.integers(0, 50), st.integers(1, 30), st.integers(0, 2), st.integers(0, 3)), max_size=25
)


@given(rows)
def test_owners_get_the_same(spans):
    start = np.array([row[0] for row in spans], np.int64)
    end = start + np.array([row[1] for row in spans], np.int64)
    tier = np.array([row[2] for row in spans], np.int8)
    owner = np.array([row[3] for row in spans], np.int64)
    orders = (np.argsort(times, kind="stable") for times in (start, end))
    exposed = np.zeros(4)
    add_exposed(start, end, tier, owner, *orders, 3, exposed)
    expected = np.zeros(4)
    for number, times in enumerate(
        exposed_ns([Spans(start[tier == each], end[tier == each]) for each in range(3)])
    ):
        expected += np.bincount(owner[tier == number], weights=times, minlength=4)
    assert exposed == pytest.approx(expected)
