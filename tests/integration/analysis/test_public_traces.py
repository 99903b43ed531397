"""Public traces of many tools: the list and page; with the folder of traces, each is opened and counted."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "public_traces.py"
LEAST_TRACES, LEAST_KINDS = 60, 10


def script():
    spec = importlib.util.spec_from_file_location("public_traces", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["public_traces"] = module
    spec.loader.exec_module(module)
    return module


PUBLIC = script()
FOLDER = os.environ.get(PUBLIC.FOLDER_VARIABLE)


def test_the_list_has_many_traces_of_many_kinds_each_with_its_commit():
    listed = PUBLIC.traces()

    assert len({(trace.repository, trace.path) for trace in listed}) == len(listed) >= LEAST_TRACES
    assert len({trace.kind for trace in listed}) >= LEAST_KINDS
    assert all(len(trace.commit) == 40 for trace in listed)


def test_the_page_has_every_trace_of_the_list():
    page = PUBLIC.PAGE.read_text()
    for trace in PUBLIC.traces():
        assert f"https://github.com/{trace.repository}/blob/{trace.commit}/{trace.path})" in page


def test_begins_and_instants_are_spans_and_numbers_of_counters_are_samples(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(
        '{"traceEvents": [{"ph": "X", "ts": 1}, {"ph": "B", "ts": "2"}, {"ph": "E", "ts": 3}, {"ph": "X"},'
        ' {"ph": "C", "ts": 4, "args": {"a": 1, "b": 2, "c": "x"}}, {"ph": "M", "ts": 0}]}'
    )

    assert PUBLIC.count_events(path) == PUBLIC.Rows(2, 2)


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER, reason=f"set {PUBLIC.FOLDER_VARIABLE} to the folder of public traces")
@pytest.mark.parametrize("trace", PUBLIC.traces(), ids=lambda trace: trace.path)
def test_a_public_trace_is_read_whole(trace, tmp_path):
    result = PUBLIC.check(trace, Path(FOLDER or ""), tmp_path)

    assert result.fault == ""
