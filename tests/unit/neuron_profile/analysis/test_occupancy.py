import pytest

from neuron_profile.analysis.occupancy import Bound, Occupancy, measure_occupancy
from neuron_tools import open_profile


def test_device_and_host_times(make_profile) -> None:
    with open_profile(make_profile()) as profile:
        occupancy = measure_occupancy(profile)
    assert occupancy == Occupancy(2, 1, 200, 300, 100, 500)
    assert occupancy.idle_ns == 100


def test_nothing_ran(make_profile) -> None:
    with open_profile(make_profile(tables={})) as profile:
        occupancy = measure_occupancy(profile)
    assert occupancy == Occupancy(0, 0, 0, 0, 0, 0)
    assert occupancy.bound is Bound.NOTHING_RAN


@pytest.mark.parametrize(
    ("busy_ns", "bound"), [(95, Bound.DEVICE), (90, Bound.DEVICE), (75, Bound.BOTH), (59, Bound.HOST)]
)
def test_the_busy_share_decides_what_binds(busy_ns: int, bound: Bound) -> None:
    assert Occupancy(1, 1, busy_ns, 100, 0, 100).bound is bound
