"""Idle time of the device by what the host was doing."""

import pytest

import neuron_tools
from neuron_profile.analysis import host_activity
from neuron_profile.analysis.host_activity import find_host_idle
from neuron_profile.analysis.host_stacks import host_calls

MILLION = 1_000_000
RUNS = ((0, 1), (2, 3), (4, 5), (6, 7))
"""When something runs on the device, in ms: each pause takes 1 ms."""


@pytest.fixture(params=[host_activity.MOST_EXECUTIONS, 1], ids=["at once", "in parts"])
def idle(make_profile, tiny_tables, monkeypatch, request):
    """What the host was doing, of samples (kind, stack, start and end in ms)."""
    monkeypatch.setattr(host_activity, "MOST_EXECUTIONS", request.param)

    def find(samples, range_ms=None):
        kinds, stacks, starts, ends = map(list, zip(*samples))
        starts, ends = ([time * MILLION for time in times] for times in (starts, ends))
        table = {
            "worker_idx": [0] * len(samples), "thread_idx": [0] * len(samples), "stack_frame_ids": stacks,
            "kind": kinds, "process_idx": [0] * len(samples), "is_leading": [True] * len(samples),
            "start_ts": starts, "end_ts": ends,
            "duration_ns": [end - start for start, end in zip(starts, ends)],
        }  # fmt: skip
        events = {
            **tiny_tables["SystemProfileEvents"],
            "name": ["nc_exec_running"] * len(RUNS),
            "process_idx": [0] * len(RUNS),
            "start_ts": [start * MILLION for start, _ in RUNS],
            "end_ts": [end * MILLION for _, end in RUNS],
            "duration_ns": [MILLION] * len(RUNS),
        }
        path = make_profile(tables={**tiny_tables, "HostSample": table, "SystemProfileEvents": events})
        with neuron_tools.open_profile(path) as profile:
            if range_ms is not None:
                profile = profile.slice(*(time * MILLION for time in range_ms))
            found = find_host_idle(profile)
            calls = host_calls(profile)
            if range_ms is not None:  # else what is before the first run counts there, too
                assert calls.idle_ns == sum(each.idle_ns for each in found.activities)
            assert found.window_ns == MILLION * (7 if range_ms is None else range_ms[1] - range_ms[0])
        return {(each.kind, each.line): each.idle_ns // MILLION for each in found.activities}

    return find


def test_a_sample_stands_for_the_pauses_since_the_one_before(idle):
    samples = [
        ("python", "1", 0, 3),
        ("optimizer", "2", 3, 4),
        ("python", "1", 4, 7),
        ("optimizer", "2", 7, 8),
    ]
    assert idle(samples) == {("python", 2): 2, ("optimizer", 3): 1}


def test_what_was_seen_once_explains_the_pause_in_which_it_was_seen(idle):
    assert idle([("import", "1", 0, 4)]) == {("import", 2): 1}


@pytest.mark.parametrize("range_ms", [None, (4, 6)])
def test_what_was_seen_once_after_the_last_run_explains_none(idle, range_ms):
    assert idle([("import", "1", 0, 9)], range_ms) == {}


def test_a_range_counts_what_was_seen_elsewhere(idle):
    assert idle([("python", "1", 0, 3), ("python", "1", 3, 9)], (4, 6)) == {("python", 2): 1}


def test_a_flame_graph_has_the_same_pauses(idle):
    assert idle([("import", "1", 0, 6), ("python", "2", 6, 9)], (1, 9)) == {
        ("import", 2): 1,
        ("python", 3): 2,
    }
