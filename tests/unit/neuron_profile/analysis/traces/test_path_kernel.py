"""The innermost span at each moment, whatever the spans are."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from neuron_profile.analysis.traces.path_kernel import innermost, spend

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=12)


def times_of(spans, low=0, high=100):
    """Time of each span between two moments, and what belongs to none."""
    start, end = (np.array(column, np.int64) for column in zip(*spans))
    at, owner = (np.zeros(2 * len(spans) + 1, np.int64) for _ in range(2))
    count = innermost(start, end, at, owner)
    assert (np.diff(at[:count]) >= 0).all()
    spent = np.zeros(len(spans), np.int64)
    nobody = spend(at[:count], owner[:count], np.array([low]), np.array([high]), spent)
    return spent.tolist(), int(nobody)


def test_a_span_that_outlives_the_one_around_it_ends_with_it():
    assert times_of([(0, 50), (10, 70), (20, 30)]) == ([10, 30, 10], 50)


@given(SPANS)
def test_times_add_up_and_none_is_negative(lengths):
    spans = sorted(
        ((start, start + length) for start, length in lengths), key=lambda span: (span[0], -span[1])
    )
    spent, nobody = times_of(spans)
    assert min(spent) >= 0
    assert 0 <= nobody <= 100 - spans[0][1] + spans[0][0]
    assert sum(spent) + nobody == 100
