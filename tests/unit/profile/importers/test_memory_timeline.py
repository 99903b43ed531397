"""torch.profiler's memory timelines: bytes held by each category over time."""

from __future__ import annotations

import gzip
import json

import pytest

from neuron_tools.profile.importers import TraceError, import_traces
from neuron_tools.profile.importers.json_decode import LARGEST_TIME
from tests.fixtures.profiler_exports import SESSION_NS, memory_events
from tests.unit.profile.importers.importing import imported, rows, written

SAMPLES = (
    "SELECT t.name, c.timestamp, c.value FROM TraceCounter c JOIN TraceTrack t USING (process_idx, track_idx)"
    " WHERE t.name = 'memory: {}' ORDER BY c.timestamp, c.value DESC"
)


def samples(profile, series):
    return [row[1:] for row in rows(profile, SAMPLES.format(series))]


def test_raw_events_become_bytes_held_by_each_category(tmp_path):
    with imported(tmp_path, gzip.compress(json.dumps(memory_events()).encode())) as profile:
        found = {name: samples(profile, name) for name in ("parameters", "activations", "gradients")}
        total = samples(profile, "allocated")
        start = rows(profile, "SELECT start_unix_ns FROM ProcessInfo")

    assert found["parameters"] == [(0, 1_000)]  # there before: its time is that of the first event
    assert found["activations"] == [(0, 500), (10, 0)]
    assert found["gradients"] == [(10, 500), (20, 0)]
    assert sorted(total) == [(0, 1_000), (0, 1_500), (10, 1_000), (10, 1_500), (20, 1_000)]
    assert start == [(SESSION_NS + 10,)]


def test_events_across_blocks_are_read_once(tmp_path, monkeypatch):
    events = [[SESSION_NS + place, 2, 8, place % 8] for place in range(3_000)]
    content = json.dumps(events).encode()
    monkeypatch.setattr("neuron_tools.profile.importers.trace_file.BLOCK_BYTES", 1_000)
    with imported(tmp_path, content) as profile:
        assert rows(profile, "SELECT count(*) AS n, max(value) AS most FROM TraceCounter") == [
            (6_000, 24_000.0)
        ]


def test_times_and_sizes_become_the_same_counters(tmp_path):
    times = [SESSION_NS + 10 * place for place in range(5)]
    sizes = [[0, 100, 0, 0, 0, 10 * place, 0, 0, 0] for place in range(5)]
    with imported(tmp_path, [times, sizes]) as profile:
        assert samples(profile, "parameters") == [(10 * place, 100) for place in range(5)]
        assert samples(profile, "activations") == [(10 * place, 10 * place) for place in range(5)]
        assert samples(profile, "allocated")[-1] == (40, 140)


def test_sizes_that_no_memory_has_are_bounded(tmp_path):
    sizes = [[0, size, 0, 0, 0, 0, 0, 0, 0] for size in (10**400, float("nan"), "much", None, -1e400)]
    with imported(tmp_path, [[SESSION_NS + place for place in range(5)], sizes]) as profile:
        found = [value for _, value in samples(profile, "parameters")]
    assert found[1:4] == [0, 0, 0]
    assert float("inf") > found[0] == -found[4] > 0


def test_times_as_late_as_a_profile_can_hold_are_drawn(tmp_path):
    events = [[SESSION_NS, 2, 8, 0], [LARGEST_TIME, 2, 16, 4]]
    with imported(tmp_path, json.dumps(events).encode()) as profile:
        assert samples(profile, "activations") == [(LARGEST_TIME - SESSION_NS, 16)]


def test_two_lists_that_do_not_end_are_one_sentence(tmp_path):
    path = written(tmp_path, "trace", b"[[1, 2, 3, 4, 5], [[1")
    with pytest.raises(TraceError, match=r"is no memory timeline: it is not two lists of one length\.$"):
        import_traces([path], tmp_path / "out.nprof")
