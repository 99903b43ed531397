"""The host's samples become trees of calls, with the time in which the device was idle."""

import pytest

import neuron_tools
from neuron_profile.analysis.host_stacks import call_rows, host_calls

MILLION = 1_000_000
# worker, thread, stack, kind, start and end in ms; the device runs from 1 to 2 ms.
SAMPLES = (
    (0, 0, "2", "python", 0, 2),
    (0, 0, "1", "optimizer", 2, 4),
    (0, 3, "1", "lock", 0, 4),
    (1, 0, "2", "data_loading", 1, 3),
)


@pytest.fixture
def sampled(make_profile, tiny_tables):
    workers, threads, stacks, kinds, starts, ends = map(list, zip(*SAMPLES))
    starts, ends = ([time * MILLION for time in times] for times in (starts, ends))
    samples = {
        "worker_idx": workers, "thread_idx": threads, "stack_frame_ids": stacks, "kind": kinds,
        "process_idx": [0] * 4, "is_leading": [True, True, False, False],
        "start_ts": starts, "end_ts": ends, "duration_ns": [end - start for start, end in zip(starts, ends)],
    }  # fmt: skip
    events = tiny_tables["SystemProfileEvents"]
    moved = {"start_ts": [MILLION] * 4, "end_ts": [2 * MILLION] * 4, "duration_ns": [MILLION] * 4}
    tables = {**tiny_tables, "HostSample": samples, "SystemProfileEvents": {**events, **moved}}
    with neuron_tools.open_profile(make_profile(tables=tables)) as profile:
        yield profile


def shown(root, **options):
    rows = call_rows(root, 100, **options)
    return [
        (row.parent, row.call.name, row.call.line, row.call.time_ns // MILLION, row.call.idle_ns // MILLION)
        for row in rows
    ]


def test_callers_stand_before_what_they_call_and_the_waiting_of_pools_is_left_out(sampled):
    assert shown(host_calls(sampled)) == [
        (-1, "all threads", 0, 6, 3),
        (0, "main thread", 0, 4, 2),
        (0, "worker 1", 0, 2, 1),
        (1, "main", 2, 4, 2),
        (3, "main", 3, 2, 0),
        (2, "main", 2, 2, 1),
        (5, "main", 3, 2, 1),
    ]


def test_a_call_has_the_kind_of_most_of_its_time(sampled):
    root = host_calls(sampled)
    assert root.child("worker 1").kind == "data_loading"
    assert root.child("main thread").kinds == {"python": 2 * MILLION, "optimizer": 2 * MILLION}


def test_what_is_cut_off_has_least_time(sampled):
    assert [row.call.name for row in call_rows(host_calls(sampled), 4)] == [
        "all threads", "main thread", "worker 1", "main",
    ]  # fmt: skip


def test_a_range_has_its_own_samples(sampled):
    with sampled.slice(2 * MILLION, 3 * MILLION) as part:
        root = host_calls(part)
    assert (root.time_ns, root.idle_ns) == (2 * MILLION, 2 * MILLION)


def test_without_samples_there_are_no_calls(make_profile):
    with neuron_tools.open_profile(make_profile()) as profile:
        assert host_calls(profile) is None
