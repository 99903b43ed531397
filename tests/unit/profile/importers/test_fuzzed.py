"""Damaged traces end in a profile with warnings or in one sentence: never in a traceback or a bad profile."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.importers import TraceError, import_traces
from neuron_tools.profile.reader import open_profile
from tests.fixtures.foreign_traces import all_traces, chrome_events, kineto_document

TRACES = all_traces()
FUZZER = Path(__file__).parents[4] / "scripts" / "fuzz.py"
TOKENS = [
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\xff", b"\x00", b"-1", b"1e400", b"9" * 30, b"NaN",
    b"9223372036854775807", b"-9223372036854775808", b"Infinity", b"null", b"[" * 200, b'"ts": "x"',
    b"\\ud800", b'"ph":"E"', b"\n", b'"dur": -5', b"\x80" * 12, b'{"a":' * 200, b"\x0a\xff\xff\xff\xff\x0f",
]  # fmt: skip
FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def damaged(draw, content):
    """The content with a few pieces put in, taken out, repeated or cut off."""
    for _ in range(draw(st.integers(1, 6))):
        first = draw(st.integers(0, len(content)))
        last = min(len(content), first + draw(st.integers(0, 60)))
        kind = draw(st.sampled_from(["insert", "remove", "repeat", "cut", "byte"]))
        if kind == "insert":
            content = content[:first] + draw(st.sampled_from(TOKENS)) + content[first:]
        elif kind == "remove":
            content = content[:first] + content[last:]
        elif kind == "repeat":
            content = content[:first] + content[first:last] * 3 + content[last:]
        elif kind == "cut":
            content = content[:first]
        else:
            content = content[:first] + draw(st.binary(min_size=1, max_size=2)) + content[last:]
    return content


def check_import(content, folder):
    """Imports a file; whatever comes of it can be read and keeps the rules of every profile."""
    trace = folder / "trace"
    trace.write_bytes(content)
    try:
        import_traces([trace], folder / "out.nprof", force=True)
    except NeuronToolsError as error:
        sentence = str(error)
    else:
        sentence = "imported"
    assert "\n" not in sentence
    if sentence != "imported":
        return
    with open_profile(folder / "out.nprof") as profile:
        for table in profile.tables():
            profile.arrow(table)
        assert (
            profile.query(
                "SELECT id FROM TraceSpan"
                " WHERE start_ts < 0 OR end_ts < start_ts OR NOT json_valid(arguments_json)"
            ).to_pylist()
            == []
        )
        assert profile.query("SELECT track_idx FROM TraceCounter WHERE timestamp < 0").to_pylist() == []


@pytest.mark.parametrize("name", TRACES)
def test_damaged_traces_end_in_a_profile_or_one_sentence(name, tmp_path):
    @settings(FEW, max_examples=6 if name == "AWS Neuron profile JSON" else 20)
    @given(damaged(TRACES[name]))
    def check(content):
        check_import(content, tmp_path)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACES)
def test_many_damaged_traces_end_in_a_profile_or_one_sentence(name, tmp_path):
    @settings(FEW, max_examples=1500)
    @given(damaged(TRACES[name]))
    def check(content):
        check_import(content, tmp_path)

    check()


@pytest.mark.slow
def test_inputs_that_reach_new_code_end_in_rows_or_one_sentence(tmp_path):
    pytest.importorskip("atheris")
    command = [
        sys.executable,
        str(FUZZER),
        "traces",
        "--seconds",
        "120",
        "--corpus",
        str(tmp_path / "corpus"),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]


def test_the_fuzzer_says_what_it_needs():
    ran = subprocess.run([sys.executable, str(FUZZER), "--help"], capture_output=True, text=True)
    assert ran.returncode == 0
    assert "pip install atheris" in ran.stdout


@FEW
@given(st.binary(max_size=300))
def test_any_bytes_end_in_a_profile_or_one_sentence(tmp_path, content):
    check_import(content, tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(["ph", "name", "cat", "pid", "tid", "ts", "dur", "args", "id", "id2", "bp", "scope"])
PHASES = st.sampled_from(list("XBEbneSTpFiIRPCMstf?"))


@FEW
@given(st.lists(st.tuples(PHASES, st.dictionaries(KEYS, JSON, max_size=8)), max_size=12))
def test_events_with_members_of_any_type_end_in_a_profile_or_one_sentence(tmp_path, events):
    document = [{**members, "ph": phase} for phase, members in events]
    check_import(json.dumps({"traceEvents": document}).encode(), tmp_path)


def warnings_of(content, folder):
    (folder / "trace").write_bytes(content)
    return import_traces([folder / "trace"], folder / "out.nprof", force=True).warnings


def test_an_event_with_an_unescaped_quote_costs_only_itself(tmp_path):
    text = json.dumps(kineto_document()).replace('"aten::mm"', '"aten::"mm""', 1)
    warnings = warnings_of(text.encode(), tmp_path)

    with open_profile(tmp_path / "out.nprof") as profile:
        assert profile.query("SELECT count(*) AS n FROM TraceSpan").to_pylist() == [{"n": 30}]
    assert any("1 elements that are not valid JSON were left out" in warning for warning in warnings)


def test_a_truncated_trace_keeps_what_stands_before_the_cut(tmp_path):
    text = json.dumps(kineto_document())
    warnings = warnings_of(text[: text.rindex('"PyTorch Profiler (0)"')].encode(), tmp_path)

    with open_profile(tmp_path / "out.nprof") as profile:
        assert profile.query("SELECT count(*) AS n FROM TraceSpan").to_pylist() == [{"n": 30}]
    assert any("ends in the middle" in warning for warning in warnings)


def test_negative_durations_and_times_too_large_are_told_of(tmp_path):
    events = chrome_events()
    events[6]["dur"] = -3
    events[10]["ts"] = 10**30
    warnings = warnings_of(json.dumps(events).encode(), tmp_path)

    assert any("Negative durations were set to 0" in warning for warning in warnings)
    assert any("1 events without a time were left out" in warning for warning in warnings)


def test_a_begin_without_an_end_lasts_until_the_trace_ends(tmp_path):
    events = [event for event in chrome_events() if event["ph"] != "E"]
    warnings = warnings_of(json.dumps(events).encode(), tmp_path)

    with open_profile(tmp_path / "out.nprof") as profile:
        rows = profile.query(
            "SELECT name, end_ts FROM TraceSpan WHERE name IN ('outer', 'inner')"
        ).to_pylist()
    assert {row["end_ts"] for row in rows} == {25_000}
    assert any("2 spans have a begin and no end" in warning for warning in warnings)


def test_bytes_that_are_no_utf8_are_replaced(tmp_path):
    text = json.dumps(chrome_events()).encode().replace(b'"outer"', b'"out\xff\xfeer"')
    warnings = warnings_of(text, tmp_path)

    with open_profile(tmp_path / "out.nprof") as profile:
        names = [row["name"] for row in profile.query("SELECT name FROM TraceSpan").to_pylist()]
    assert "out\ufffd\ufffder" in names
    assert any("not UTF-8" in warning for warning in warnings)


def test_arguments_nested_too_deeply_are_left_out(tmp_path):
    events = json.dumps(chrome_events()).replace('{"a": 1}', '{"a":' * 5000 + "1" + "}" * 5000)
    warnings = warnings_of(events.encode(), tmp_path)

    assert any("Arguments that are no valid JSON were left out" in warning for warning in warnings)


def test_a_file_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("neuron_tools.profile.importers.trace_file.ALWAYS_ALLOWED_BYTES", 1 << 20)
    bomb = gzip.compress(b'{"traceEvents": [' + b" " * (64 << 20))
    with pytest.raises(TraceError, match="times its size"):
        warnings_of(bomb, tmp_path)


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.mkdir(), lambda path: path.symlink_to("/dev/zero")]
)
def test_what_is_no_regular_file_is_refused_at_once(make, tmp_path):
    make(tmp_path / "trace")
    with pytest.raises(TraceError):
        import_traces([tmp_path / "trace"], tmp_path / "out.nprof")


def test_names_that_look_like_paths_touch_no_file(tmp_path):
    document = kineto_document()
    document["traceEvents"][6]["name"] = "../../evil"
    document["host_name"] = "/etc/passwd"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "trace'; DROP TABLE x.json").write_text(json.dumps(document))
    import_traces([tmp_path / "in" / "trace'; DROP TABLE x.json"], tmp_path / "in" / "it's.nprof")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]
    with open_profile(tmp_path / "in" / "it's.nprof") as profile:
        assert profile.tables()["TraceSpan"] == 31


def test_an_import_that_fails_leaves_nothing_behind(tmp_path):
    (tmp_path / "trace").write_text('{"traceEvents": []}')
    with pytest.raises(TraceError, match="holds nothing"):
        import_traces([tmp_path / "trace"], tmp_path / "out.nprof")

    assert [path.name for path in tmp_path.iterdir()] == ["trace"]
