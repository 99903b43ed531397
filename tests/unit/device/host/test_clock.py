import pytest

from neuron_tools.device.host import clock as clock_module
from neuron_tools.device.host.clock import HostClock


@pytest.fixture
def wall(monkeypatch):
    """A wall clock that the test moves by hand."""
    now = [1_000]
    monkeypatch.setattr(clock_module.time, "perf_counter_ns", lambda: now[0])
    return now


def test_time_starts_at_zero_and_follows_the_wall(wall):
    clock = HostClock()
    wall[0] += 70
    assert clock.now_ns() == 70


def test_nested_pauses_leave_out_what_passes_meanwhile(wall):
    clock = HostClock()
    wall[0] += 10
    with clock.paused() as stopped_at:
        wall[0] += 500
        with clock.paused():
            wall[0] += 500
        assert clock.now_ns() == stopped_at == 10
    wall[0] += 5
    assert clock.now_ns() == 15


def test_waiting_moves_forward_only(wall):
    clock = HostClock()
    clock.wait_until(100)
    clock.wait_until(50)
    wall[0] += 1
    assert clock.now_ns() == 101


def test_the_fixed_clock_moves_by_dispatches_and_waits_only(wall):
    clock = HostClock(fixed_ns_per_dispatch=30)
    wall[0] += 1_000
    assert clock.now_ns() == 0
    assert clock.dispatch() == 30
    with clock.paused():
        clock.wait_until(90)
    assert clock.now_ns() == 90


def test_one_resume_too_many_changes_nothing(wall):
    clock = HostClock()
    clock.resume()
    wall[0] += 3
    assert clock.now_ns() == 3
