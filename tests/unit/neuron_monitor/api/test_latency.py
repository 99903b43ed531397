"""Histograms and what they tell of a period."""

import pytest
from hypothesis import given, settings, strategies as st

from neuron_monitor.api.latency import EMPTY, added_between, parse_histogram, percentiles, together

histograms = st.dictionaries(st.integers(1, 60).map(str), st.integers(1, 50), max_size=8)


def as_dict(histogram):
    return {bound: count for bound, count in zip(histogram.bounds.ns, histogram.counts) if count}


def test_percentiles_are_the_bounds_at_which_they_are_reached():
    found = percentiles(parse_histogram({"2000": 1, "1000": 98, "9000": 1}))
    assert found == {0: 1e-6, 1: 1e-6, 25: 1e-6, 50: 1e-6, 75: 1e-6, 99: 2e-6, 100: 9e-6}


@pytest.mark.parametrize("told", [{}, {"5": 0, "7": 0}])
def test_no_executions_have_no_percentiles(told):
    assert percentiles(parse_histogram(told)) is None


def test_bounds_that_nothing_reached_are_passed_over():
    assert percentiles(parse_histogram({"5": 0, "7": 2, "9": 0}))[0] == 7e-9


@settings(deadline=None)
@given(st.dictionaries(st.integers(1, 10**12).map(str), st.integers(1, 10**6), min_size=1))
def test_percentiles_rise_and_lie_among_the_bounds(told):
    values = list(percentiles(parse_histogram(told)).values())
    assert values == sorted(values)
    assert set(values) <= {int(bound) / 1e9 for bound in told}
    assert values[-1] == max(map(int, told)) / 1e9


@given(histograms)
def test_bounds_are_put_in_order(told):
    histogram = parse_histogram(told)
    assert list(histogram.bounds.ns) == sorted(map(int, told))
    assert as_dict(histogram) == {int(bound): count for bound, count in told.items()}


@given(histograms, histograms)
def test_what_was_added_is_the_difference(before, more):
    after = {key: before.get(key, 0) + more.get(key, 0) for key in {**before, **more}}
    added = added_between(parse_histogram(before), parse_histogram(after))
    assert as_dict(added) == {int(bound): count for bound, count in more.items()}


def test_counts_that_fell_add_nothing():
    added = added_between(parse_histogram({"5": 9, "7": 1}), parse_histogram({"5": 2, "7": 4}))
    assert as_dict(added) == {7: 3}


@given(st.lists(histograms, max_size=4))
def test_several_add_up(told):
    total = {}
    for each in told:
        for bound, count in each.items():
            total[int(bound)] = total.get(int(bound), 0) + count
    assert as_dict(together(map(parse_histogram, told))) == total


def test_equal_bounds_are_one_object():
    assert parse_histogram({"5": 1, "7": 2}).bounds is parse_histogram({"5": 3, "7": 4}).bounds
    assert together([]) is EMPTY


def test_a_bound_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="many"):
        parse_histogram({"many": 1})
