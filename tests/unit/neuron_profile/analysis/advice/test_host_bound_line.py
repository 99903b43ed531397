"""The line that `host_bound` names, the one that the host spends most time up to and at, and its gain."""

import pytest

from neuron_profile.analysis.advice.rules.host_bound import _SLOWEST, _line, _untold_ns, _waiting_share
from neuron_profile.analysis.host_activity import HostActivity, HostIdle
from neuron_tools import open_profile


def spans(*rows):
    names = ("start_ts", "end_ts", "kind", "source_line", "thread_idx")
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    count = len(rows)
    return {
        **columns,
        "duration_ns": [end - start for start, end, *_ in rows],
        "process_idx": [0] * count,
        "name": ["call"] * count,
        "source_file": ["train.py" if line else None for line in columns["source_line"]],
    }


def slowest(make_profile, *rows):
    with open_profile(make_profile(tables={"HostSpan": spans(*rows)})) as profile:
        (found,) = profile.query(_SLOWEST).to_pylist()
    return found["line"], found["host_ns"], found["calls"]


def test_time_up_to_a_call_counts_more_than_the_number_of_calls(make_profile):
    many = [(10 * n, 10 * n + 5, "dispatch", 7, 0) for n in range(10)]
    assert slowest(make_profile, *many, (1000, 1010, "copy", 3, 0)) == (3, 905, 1)


def test_waiting_for_the_device_is_not_the_hosts_time(make_profile):
    rows = [(0, 10, "dispatch", 7, 0), (12, 900, "synchronize", 8, 0), (910, 930, "dispatch", 9, 0)]
    assert slowest(make_profile, *rows) == (9, 30, 1)


def test_another_threads_calls_end_a_pause(make_profile):
    rows = [(0, 10, "dispatch", 7, 1), (10, 500, "dispatch", 8, 0), (500, 510, "dispatch", 7, 1)]
    assert slowest(make_profile, *rows) == (8, 490, 1)


def activity(kind: str, idle_ns: int) -> HostActivity:
    return HostActivity(kind, "", "train.py", 7, "main", "", "", idle_ns)


CALLS = [{"file": "model.py", "line": 30, "host_ns": 400, "calls": 9}]


@pytest.mark.parametrize(
    ("calls", "seen", "line"),
    [
        (CALLS, [activity("python", 60), activity("copy", 40)], 7),
        (CALLS, [activity("python", 60), activity("copy", 39)], 30),
        (CALLS, [], 30),
        ([], [activity("copy", 1)], 7),
        ([], [], 0),
    ],
)
def test_samples_name_the_line_where_they_saw_a_tenth_of_the_idle_time(calls, seen, line):
    place, shown = _line(calls, seen, idle_ns=1000)
    assert place.line == line
    evidence = {7: {"kind", "line_idle_ns"}, 30: {"line_host_ns", "line_calls"}, 0: set()}
    assert set(shown) == evidence[line]


@pytest.mark.parametrize(
    ("told_ns", "rest_ns", "untold_ns"), [(0, 0, 1000), (0, 60, 1000), (30, 10, 250), (40, 0, 0)]
)
def test_what_no_sample_saw_is_shared_out_as_what_was_seen(told_ns, rest_ns, untold_ns):
    seen = [activity("data_loading", told_ns), activity("python", rest_ns)]
    seen = [each for each in seen if each.idle_ns]
    rest = tuple(each for each in seen if each.kind == "python")
    assert _untold_ns(HostIdle(2000, 1000, 40, tuple(seen)), rest) == untold_ns


def test_idle_time_that_another_rule_reports_is_not_told_twice():
    idle = HostIdle(1000, 870, 870, (activity("data_loading", 860), activity("python", 10)))
    assert _waiting_share(0.87, idle, 10) == pytest.approx(0.01)
    assert _waiting_share(0.87, None, 870) == pytest.approx(0.87)
