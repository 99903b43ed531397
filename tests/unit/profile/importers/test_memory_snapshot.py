"""PyTorch's memory snapshots: bytes over time that end with what the segments hold, events at their lines."""

from __future__ import annotations

import json
import pickle

import pytest

from neuron_profile.analysis.traces.overview import look_at_trace
from neuron_profile.reports.trace_text import trace_verdict
from neuron_tools.profile.importers import TraceError, import_traces
from neuron_tools.profile.verify import verify
from tests.fixtures.profiler_exports import SESSION_NS, memory_snapshot
from tests.unit.profile.importers.importing import imported, rows, written

SAMPLES = (
    "SELECT c.timestamp, c.value FROM TraceCounter c JOIN TraceTrack t USING (process_idx, track_idx)"
    " WHERE t.name = 'device {}: memory {}' ORDER BY c.timestamp, c.value"
)


def test_sizes_end_with_what_the_segments_hold(tmp_path):
    with imported(tmp_path, memory_snapshot()) as profile:
        allocated = rows(profile, SAMPLES.format(0, "allocated"))
        reserved = rows(profile, SAMPLES.format(0, "reserved"))
        other = rows(profile, SAMPLES.format(1, "reserved"))
        start = rows(profile, "SELECT start_unix_ns FROM ProcessInfo")
        assert verify(profile) == []
    assert allocated == [(0, 300.0), (1_000, 800.0), (3_000, 700.0)]
    assert reserved == [(0, 0.0), (0, 2_000.0)]
    assert [value for _, value in other] == [64.0]
    assert start == [(SESSION_NS,)]


def test_events_stand_at_the_line_of_the_program(tmp_path):
    with imported(tmp_path, memory_snapshot()) as profile:
        found = rows(profile, "SELECT name, start_ts, source_file, source_line FROM TraceSpan ORDER BY id")
        told = rows(profile, "SELECT arguments_json FROM TraceSpan WHERE name = 'alloc'")
    line = ("/home/me/train.py", 12)
    assert found == [
        ("segment_alloc", 0, *line), ("alloc", 1_000, *line), ("free_requested", 3_000, *line),
        ("free_completed", 4_000, *line),
    ]  # fmt: skip
    assert json.loads(told[0][0]) == {"bytes": 500, "address": 4096, "stream": 0}


def test_the_headline_is_the_highest_size(tmp_path):
    with imported(tmp_path, memory_snapshot(segments=[{"device": 0, "total_size": 2_000}])) as profile:
        assert trace_verdict(look_at_trace(profile)) == (
            "4 marks and counters: device 0: memory reserved was highest with 2.00 kB at 0 ns."
        )


def test_events_without_times_stand_in_their_order(tmp_path):
    events = [[{"action": "alloc", "size": 8}, {"action": "free", "size": 8}, "no event", {"size": 1}]]
    path = written(tmp_path, "snapshot.pkl", memory_snapshot(device_traces=events))
    report = import_traces([path], tmp_path / "out.nprof")
    assert report.rows["TraceSpan"] == 2
    assert report.warnings == (
        "snapshot.pkl: The snapshot's events have no times: they stand a microsecond apart, in their order.",
    )


class Harmful:
    """Runs something when it is loaded."""

    def __reduce__(self):
        return print, ("loaded",)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (memory_snapshot(segments=[Harmful()]), r"is no memory snapshot \(it holds builtins\.print\)"),
        (memory_snapshot()[:-20], "is no whole memory snapshot"),
        (pickle.dumps(["segments"]), "is a pickle, but no memory snapshot"),
    ],
)
def test_what_is_no_snapshot_is_one_sentence(tmp_path, capsys, content, reason):
    path = written(tmp_path, "snapshot.pkl", content)
    with pytest.raises(TraceError, match=reason):
        import_traces([path], tmp_path / "out.nprof")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("wrong", [None, "x", {1: 2}, [None, 3, {"device": "x", "total_size": 1 << 80}]])
def test_parts_of_another_form_count_as_nothing(tmp_path, wrong):
    path = written(tmp_path, "snapshot.pkl", memory_snapshot(segments=wrong))
    assert import_traces([path], tmp_path / "out.nprof").rows["TraceSpan"] == 4
