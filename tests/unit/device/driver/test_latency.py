from __future__ import annotations

from hypothesis import given, strategies as st

from neuron_tools.device.driver.latency import BUCKETS, bucket_of, upper_bound_ns


@given(st.integers(0, 2**62 - 1))
def test_a_time_is_in_the_bucket_between_two_bounds_that_differ_by_an_eighth(ns: int) -> None:
    bucket = bucket_of(ns)
    assert 0 <= bucket < BUCKETS
    upper = upper_bound_ns(bucket)
    lower = upper_bound_ns(bucket - 1) + 1 if bucket else 0
    assert lower <= ns <= upper
    assert upper - lower <= lower / 8


def test_negative_times_count_as_none() -> None:
    assert bucket_of(-5) == 0
