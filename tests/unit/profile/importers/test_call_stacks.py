"""Calls of a host's profiles: speedscope's own format, V8's and pprof."""

from __future__ import annotations

import gzip
import json

import pytest

from neuron_tools.profile.importers import TraceError, import_traces
from neuron_tools.profile.importers.call_stacks import CallStacks
from tests.fixtures.profiler_exports import SESSION_NS, cpu_profile, pprof_profile, speedscope_document
from tests.unit.profile.importers.importing import imported, rows, written

CALLS = (
    "SELECT s.start_ts, s.duration_ns, s.name, s.source_file, s.source_line FROM TraceSpan s"
    " JOIN TraceTrack t USING (process_idx, track_idx) WHERE t.name = '{}' ORDER BY s.id"
)
MS = 1_000_000


def calls(profile, thread):
    return rows(profile, CALLS.format(thread))


def test_neighbouring_samples_are_one_call(tmp_path):
    with imported(tmp_path, speedscope_document()) as profile:
        found = calls(profile, "MainThread")
    first = found[0][0]
    assert [(start - first, *rest) for start, *rest in found] == [
        (0, 40 * MS, "main", "train.py", 3),
        (0, 20 * MS, "load", "data.py", 7),
        (20 * MS, 10 * MS, "step", None, None),
    ]


def test_calls_that_open_and_close_are_nested(tmp_path):
    with imported(tmp_path, speedscope_document()) as profile:
        found = calls(profile, "worker")
        warnings = rows(profile, "SELECT message FROM Warning")
    assert [row[:3] for row in found] == [
        (0, 4 * MS, "main"),
        (1 * MS, 1_500_000, "load"),
        (3 * MS, 1 * MS, "step"),  # never closed: it ends with its caller
    ]
    assert any("heap was left out: its unit is bytes, no time." in text for (text,) in warnings)
    assert any("ended out of order" in text for (text,) in warnings)


def test_a_profile_without_times_is_one_sentence(tmp_path):
    document = speedscope_document()
    document["profiles"] = document["profiles"][2:]
    path = written(tmp_path, "heap.json", document)
    with pytest.raises(
        TraceError, match=r"has no calls with times \(units: bytes\): export a profile in sec"
    ):
        import_traces([path], tmp_path / "out.nprof")


@pytest.mark.parametrize(
    "changed",
    [
        {"samples": [[0, 10**30], "x", [-1, 5]], "weights": [1e400, float("nan"), -1]},
        {
            "type": "evented",
            "events": [None, {"type": "C", "frame": 1, "at": 3}, {"type": "O", "frame": "x"}],
        },
        {"samples": None, "weights": {}},
    ],
)
def test_values_that_no_profile_has_are_bounded(tmp_path, changed):
    document = speedscope_document()
    document["profiles"][0] |= changed
    document["shared"]["frames"][2] = {"name": "step", "line": True, "file": 7}
    with imported(tmp_path, json.dumps(document).encode()) as profile:
        assert len(calls(profile, "worker")) == 3


def test_stacks_of_pprof_stand_side_by_side_with_their_inlined_calls(tmp_path):
    with imported(tmp_path, gzip.compress(pprof_profile())) as profile:
        found = calls(profile, "all threads, in sums")
        start = rows(profile, "SELECT start_unix_ns FROM ProcessInfo")
    assert found == [
        (0, 35_000, "main", "main.go", 4),
        (0, 35_000, "load", "main.go", 12),
        (20_000, 10_000, "step", "step.go", 30),
        (30_000, 5_000, "0xabc", None, None),
    ]
    assert start == [(SESSION_NS,)]


def test_a_pprof_whose_numbers_stand_first_is_known(tmp_path):
    content = pprof_profile()
    with imported(tmp_path, bytes([9 << 3, 5, 12 << 3, 0x90, 1]) + content) as profile:
        assert len(calls(profile, "all threads, in sums")) == 4


def test_a_pprof_whose_period_stands_first_is_known(tmp_path):
    period = bytes([11 << 3 | 2, 4, 1 << 3, 3, 2 << 3, 4])
    with imported(tmp_path, period + pprof_profile()) as profile:
        assert len(calls(profile, "all threads, in sums")) == 4


def test_pprof_of_memory_is_a_counter_for_each_function_that_holds_some(tmp_path):
    query = (
        "SELECT t.name, t.unit, c.value FROM TraceCounter c JOIN TraceTrack t USING (process_idx, track_idx)"
        " ORDER BY c.value, t.name"
    )
    with imported(tmp_path, gzip.compress(pprof_profile("kilobytes"))) as profile:
        found = rows(profile, query)
    assert found == [
        ("cpu: 0xabc", "bytes", 5_000 * 1024.0),
        ("cpu: step", "bytes", 10_000 * 1024.0),
        ("cpu: load", "bytes", 20_000 * 1024.0),
        ("cpu: all functions", "bytes", 35_000 * 1024.0),
    ]


def test_small_holders_of_memory_are_summed_up(tmp_path, monkeypatch):
    monkeypatch.setattr("neuron_tools.profile.importers.pprof.MOST_FUNCTIONS", 1)
    with imported(tmp_path, gzip.compress(pprof_profile("bytes"))) as profile:
        found = rows(profile, "SELECT value FROM TraceCounter ORDER BY value")
    assert found == [(15_000.0,), (20_000.0,), (35_000.0,)]


def test_pprof_of_neither_times_nor_bytes_is_one_sentence(tmp_path):
    path = written(tmp_path, "goroutines.pb.gz", gzip.compress(pprof_profile("goroutines")))
    with pytest.raises(TraceError, match="holds neither times nor bytes but count, goroutines: record"):
        import_traces([path], tmp_path / "out.nprof")


def test_a_cut_off_pprof_is_one_sentence(tmp_path):
    path = written(tmp_path, "cut.pb", pprof_profile()[:-5])
    with pytest.raises(TraceError, match="is no whole pprof profile"):
        import_traces([path], tmp_path / "out.nprof")


def test_an_end_without_a_call_changes_nothing():
    stacks = CallStacks()
    stacks.open(1, 0)
    stacks.close(2, 5)
    frames, starts, ends = stacks.finish(9)
    assert (frames.tolist(), starts.tolist(), ends.tolist(), stacks.mismatched) == ([1], [0], [9], 1)


def test_samples_of_v8_are_calls_with_their_lines(tmp_path):
    with imported(tmp_path, cpu_profile()) as profile:
        found = calls(profile, "JavaScript")

    file = "/app/train.js"
    assert found == [
        (0, 3 * MS, "main", file, 3),
        (0, 2 * MS, "load", file, 7),
        (2 * MS, 1 * MS, "(anonymous)", file, 12),
        (4 * MS, 1 * MS, "main", file, 3),
    ]


def test_nodes_of_v8_may_name_their_parents(tmp_path):
    nodes = cpu_profile()["nodes"]
    parents = {child: node["id"] for node in nodes for child in node.pop("children")}
    named = [{**node, "parent": parents[node["id"]]} if node["id"] in parents else node for node in nodes]
    with imported(tmp_path, cpu_profile(nodes=named)) as profile:
        assert [row[2] for row in calls(profile, "JavaScript")] == ["main", "load", "(anonymous)", "main"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [({"samples": []}, "without samples: record it again"), ({}, "more than 3 frames in its samples")],
)
def test_a_cpu_profile_without_use_is_one_sentence(tmp_path, monkeypatch, changes, sentence):
    monkeypatch.setattr("neuron_tools.profile.importers.cpuprofile.MOST_FRAMES", 3)
    with pytest.raises(TraceError, match=sentence):
        import_traces([written(tmp_path, "trace", cpu_profile(**changes))], tmp_path / "out.nprof")
