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


def steps(*ends: int) -> dict:
    """HostSpan rows of optimizer steps that end at the given times."""
    return {
        "start_ts": [end - 1 for end in ends],
        "end_ts": list(ends),
        "duration_ns": [1] * len(ends),
        "process_idx": [0] * len(ends),
        "thread_idx": [0] * len(ends),
        "name": ["AdamW.step"] * len(ends),
        "kind": ["optimizer"] * len(ends),
    }


def test_the_first_step_does_not_decide_what_binds(make_profile, tiny_tables) -> None:
    """Executions run 1000-1100 and 1200-1300: after a first step that ends at 1190, 100 of 110 ns."""
    with open_profile(make_profile(tables={**tiny_tables, "HostSpan": steps(1190, 1290)})) as profile:
        occupancy = measure_occupancy(profile)
    assert (occupancy.steady_device_ns, occupancy.steady_window_ns) == (100, 110)
    assert occupancy.bound is Bound.DEVICE
    assert occupancy.busy_share == pytest.approx(2 / 3)


def test_a_single_step_is_all_there_is(make_profile, tiny_tables) -> None:
    with open_profile(make_profile(tables={**tiny_tables, "HostSpan": steps(1190)})) as profile:
        occupancy = measure_occupancy(profile)
    assert not occupancy.has_steps
    assert occupancy.steady_share == occupancy.busy_share


def test_reading_a_tensor_is_waiting_but_for_the_copy(make_profile, tiny_tables) -> None:
    """The copy back takes 10 ns; the call that reads the tensor takes 70, synchronisations 100."""
    events = {name: list(values) for name, values in tiny_tables["SystemProfileEvents"].items()}
    for name, value in {"id": 99, "name": "nrt_tensor_read", "start_ts": 1240, "end_ts": 1310}.items():
        events[name].append(value)
    for name in set(events) - {"id", "name", "start_ts", "end_ts"}:
        events[name].append(70 if name == "duration_ns" else events[name][-1])
    with open_profile(make_profile(tables={**tiny_tables, "SystemProfileEvents": events})) as profile:
        assert measure_occupancy(profile).host_wait_ns == 160
