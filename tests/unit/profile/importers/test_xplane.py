"""XSpace profiles, and the trace JSON that XLA writes beside them."""

from __future__ import annotations

import json

from tests.fixtures.foreign_traces import BASE_NS, all_traces, xspace
from tests.unit.profile.importers.importing import imported, rows, spans


def test_events_have_exact_times_names_and_lines(tmp_path):
    with imported(tmp_path, xspace()) as profile:
        found = spans(profile)
        source = rows(profile, "SELECT source_file, source_line FROM TraceSpan WHERE source_line IS NOT NULL")

    # Offsets are picoseconds after the line's start: 500,500 ps round to 501 ns.
    assert found == [("XLA Ops", "fusion.1", 0, 4), ("python", "$train.py:12 step", 501, 2_501)]
    assert source == [("train.py", 12)]


def test_device_lines_stand_under_their_plane(tmp_path):
    with imported(tmp_path, xspace()) as profile:
        found = rows(
            profile,
            "SELECT t.name, t.kind, t.device_idx, p.name AS plane FROM TraceTrack t LEFT JOIN TraceTrack p"
            " ON p.track_idx = t.parent_track_idx ORDER BY 1",
        )

    assert found == [
        ("/device:TPU:0 (core)", "other", 0, None),
        ("XLA Ops", "stream", 0, "/device:TPU:0 (core)"),
        ("python", "thread", None, None),
    ]


def test_statistics_are_arguments_and_references_are_followed(tmp_path):
    with imported(tmp_path, xspace()) as profile:
        ((arguments, correlation),) = rows(
            profile, "SELECT arguments_json, correlation_id FROM TraceSpan WHERE name = 'fusion.1'"
        )
        ((start,),) = rows(profile, "SELECT start_unix_ns FROM ProcessInfo")

    assert json.loads(arguments) == {"correlation_id": 5, "kind": "loop"}
    assert correlation == 5
    assert start == BASE_NS + 1_000


def test_the_trace_json_is_laid_out_alike(tmp_path):
    with imported(tmp_path, all_traces()["XLA trace JSON"]) as profile:
        found = rows(
            profile,
            "SELECT s.name, s.duration_ns, s.source_line, t.kind, t.device_idx FROM TraceSpan s"
            " JOIN TraceTrack t USING (process_idx, track_idx) ORDER BY s.start_ts",
        )

    assert found == [("$a.py:98 ones", 39_900, 98, "thread", None), ("fusion.1", 1_000, None, "stream", 0)]
