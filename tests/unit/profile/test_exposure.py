import numpy as np
import pytest
from hypothesis import given, strategies as st

from neuron_tools.profile.exposure import Spans, exposed_ns


def spans(*pairs: tuple[int, int]) -> Spans:
    starts, ends = zip(*pairs) if pairs else ((), ())
    return Spans(np.array(starts, np.int64), np.array(ends, np.int64))


def test_overlapping_spans_share_the_overlap() -> None:
    (times,) = exposed_ns([spans((0, 10), (5, 20))])
    assert times.tolist() == [7.5, 12.5]


def test_a_higher_tier_hides_a_lower_one() -> None:
    compute, transfers = exposed_ns([spans((10, 20)), spans((0, 30), (12, 18))])
    assert compute.tolist() == [10]
    assert transfers.tolist() == [20, 0]


def test_spans_without_length_and_empty_tiers_get_nothing() -> None:
    first, second, third = exposed_ns([spans(), spans((5, 5)), spans((0, 10))])
    assert (first.tolist(), second.tolist(), third.tolist()) == ([], [0], [10])


def test_no_spans_at_all() -> None:
    assert [times.tolist() for times in exposed_ns([spans(), spans()])] == [[], []]


interval = st.tuples(st.integers(0, 60), st.integers(0, 30)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(st.lists(interval, max_size=8), min_size=1, max_size=4))
def test_exposed_time_adds_up_to_the_union_and_never_exceeds_a_span(
    tiers: list[list[tuple[int, int]]],
) -> None:
    times = exposed_ns([spans(*tier) for tier in tiers])
    union = {moment for tier in tiers for start, end in tier for moment in range(start, end)}
    assert sum(tier.sum() for tier in times) == pytest.approx(len(union))
    for tier, tier_times in zip(tiers, times):
        for (start, end), exposed in zip(tier, tier_times):
            assert -1e-9 <= exposed <= end - start + 1e-9
