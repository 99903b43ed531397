"""A time of modification only marks what nothing could have changed since without a later time."""

import time

import pytest

from neuron_monitor.api.modified import lasting_mark


def test_an_older_time_is_a_mark():
    earlier_ns = time.time_ns() - 1_000_000_000
    assert lasting_mark(earlier_ns) == earlier_ns


@pytest.mark.parametrize("ahead_ns", [0, 10**18])
def test_a_time_that_the_next_change_may_bear_is_none(ahead_ns):
    assert lasting_mark(time.time_ns() + ahead_ns) == -1
