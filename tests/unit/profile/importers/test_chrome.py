"""Chrome trace events of every kind."""

from __future__ import annotations

import json

import pytest

from neuron_tools.profile.importers import import_traces
from tests.fixtures.foreign_traces import chrome_events
from tests.unit.profile.importers.importing import imported, rows, spans


def test_begins_and_ends_become_nested_spans(tmp_path):
    with imported(tmp_path, chrome_events()) as profile:
        found = spans(profile, "t.name = 'main' AND s.name IN ('outer', 'inner')")

    assert found == [("main", "outer", 5_000, 15_000), ("main", "inner", 7_500, 10_000)]


def test_arguments_of_begin_and_end_are_joined(tmp_path):
    events = chrome_events()
    events[3]["args"] = {"a": 1}
    with imported(tmp_path, events) as profile:
        ((arguments,),) = rows(profile, "SELECT arguments_json FROM TraceSpan WHERE name = 'inner'")

    assert json.loads(arguments) == {"a": 1, "b": [1, {"c": None}]}


def test_the_object_form_and_a_list_without_end_give_the_same(tmp_path):
    text = json.dumps(chrome_events())
    forms = [
        text.encode(),
        json.dumps({"traceEvents": chrome_events()}).encode(),
        text[:-1].encode() + b",\n",
    ]
    found = []
    for form in forms:
        with imported(tmp_path, form) as profile:
            found.append((spans(profile), rows(profile, "FROM TraceCounter")))

    assert found[0] == found[1] == found[2]


def test_times_are_exact_to_the_nanosecond(tmp_path):
    text = '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1729888371056597.613,"dur":0.001},'
    text += '{"ph":"X","name":"b","pid":1,"tid":1,"ts":"1729888371056597.615","dur":2e-3}]'
    with imported(tmp_path, text.encode()) as profile:
        found = spans(profile)
        ((start_unix_ns,),) = rows(profile, "SELECT start_unix_ns FROM ProcessInfo")

    assert [(name, start, end) for _, name, start, end in found] == [("a", 0, 1), ("b", 2, 4)]
    assert start_unix_ns == 1_729_888_371_056_597_613


def test_asynchronous_events_meet_by_id(tmp_path):
    with imported(tmp_path, chrome_events()) as profile:
        found = spans(profile, "t.name = 'net'")

    assert found == [("net", "request", 0, 25_000), ("net", "half", 1_000, 1_000)]


def test_each_series_of_a_counter_is_a_track(tmp_path):
    with imported(tmp_path, chrome_events()) as profile:
        found = rows(
            profile,
            "SELECT t.name, c.timestamp, c.value FROM TraceCounter c"
            " JOIN TraceTrack t USING (process_idx, track_idx) ORDER BY 1",
        )

    assert found == [("queue bytes", 8_000, 2.5), ("queue length", 8_000, 3.0)]


def test_a_flow_ties_the_spans_that_enclose_its_ends(tmp_path):
    with imported(tmp_path, chrome_events()) as profile:
        found = rows(
            profile,
            "SELECT a.name, b.name AS target FROM Flow f"
            " JOIN TraceSpan a ON a.id = f.in_id JOIN TraceSpan b ON b.id = f.out_id",
        )

    assert found == [("inner", "whole")]


def test_names_are_unescaped_and_processes_and_threads_named(tmp_path):
    events = chrome_events()
    events[6]["name"] = 'ü "q" \\ \U0001f9e0 \n'
    with imported(tmp_path, json.dumps(events).encode()) as profile:
        found = rows(profile, "SELECT name FROM TraceSpan WHERE category IS NULL AND name LIKE 'ü%'")
        tracks = rows(
            profile, "SELECT name, kind, thread_id FROM TraceTrack WHERE kind = 'thread' ORDER BY name"
        )
        processes = rows(profile, "SELECT name, process_id FROM ProcessInfo")

    assert found == [('ü "q" \\ \U0001f9e0 \n',)]
    assert tracks == [("main", "thread", 2), ("worker", "thread", None)]
    assert processes == [("browser", 1)]


def test_half_a_character_in_a_name_reads_as_a_question_mark(tmp_path):
    text = json.dumps(chrome_events())
    halved = text.replace('"browser"', r'"brow\ud800ser"').replace('"main"', r'"ma\udfffin"')
    with imported(tmp_path, halved.encode()) as profile:
        assert rows(profile, "SELECT name FROM ProcessInfo") == [("brow?ser",)]
        assert rows(profile, "SELECT count(*) FROM TraceTrack WHERE name = 'ma?in'") == [(1,)]


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_where_the_text_is_cut_into_blocks_does_not_matter(tmp_path, monkeypatch, size):
    with imported(tmp_path, chrome_events()) as profile:
        expected = spans(profile)
    monkeypatch.setattr("neuron_tools.profile.importers.trace_file.BLOCK_BYTES", size)
    monkeypatch.setattr("neuron_tools.profile.importers.trace_file.TraceFile.blocks.__defaults__", (size,))
    with imported(tmp_path, chrome_events()) as profile:
        assert spans(profile) == expected


def test_an_empty_file_and_another_document_are_refused(tmp_path):
    for content, message in (
        (b"  ", "is empty"),
        (b'{"some": "thing"}', "no known format"),
        (b"hello", "no known"),
    ):
        (tmp_path / "trace").write_bytes(content)
        with pytest.raises(Exception, match=message):
            import_traces([tmp_path / "trace"], tmp_path / "out.nprof")


def test_lives_and_snapshots_of_objects_and_memory_dumps_are_instants(tmp_path):
    events = [
        {"ph": phase, "name": "tile", "cat": "cc", "pid": 1, "tid": 2, "ts": place, "id": "0x7", "args": {}}
        for place, phase in enumerate("NODvV")
    ]
    with imported(tmp_path, events) as profile:
        found = rows(profile, "SELECT start_ts, duration_ns FROM TraceSpan ORDER BY start_ts")

    assert found == [(1_000 * place, 0) for place in range(5)]
