"""A time of modification only marks what nothing could have changed since without a later time."""

from types import SimpleNamespace

import pytest

from neuron_tools.device.driver import modified

NOW_NS = 1_700_000_000_000_000_000


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    monkeypatch.setattr(modified, "time", SimpleNamespace(time_ns=lambda: NOW_NS))


def test_an_older_time_is_a_mark():
    earlier_ns = NOW_NS - 1_000_000_000
    assert modified.lasting_mark(earlier_ns) == earlier_ns


@pytest.mark.parametrize("ahead_ns", [0, -10_000_000, 10**18])
def test_a_time_that_the_next_change_may_bear_is_none(ahead_ns):
    assert modified.lasting_mark(NOW_NS + ahead_ns) == -1
