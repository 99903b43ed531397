"""Spans of traces as columns: the same from stored parts, from a slice, and where columns are absent."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

import neuron_tools
from neuron_profile.analysis.traces.device_spans import NOT_LAUNCHED, load_device_spans
from neuron_profile.analysis.traces.stored_spans import NO_CORRELATION, distinct, read_spans
from tests.unit.neuron_profile.analysis.traces.tiny_trace import COMPUTE, REDUCE, ROWS, open_trace


def everything(rows):
    return np.ones(len(rows), bool)


def as_rows(table):
    """Number of the track, name, category, start, end and correlation of each span."""
    rows = table.rows
    return list(
        zip(
            table.tracks.number[rows.place].tolist(), [table.names[code] for code in rows.name.tolist()],
            [table.categories[code] for code in rows.category.tolist()], rows.start_ns.tolist(),
            rows.end_ns.tolist(), rows.correlation.tolist(),
        )
    )  # fmt: skip


def expected(rows):
    return [
        (track, name, category, 1000 * start, 1000 * end, NO_CORRELATION if number is None else number)
        for track, name, category, start, end, number in rows
    ]


def test_all_spans_are_read_with_their_texts(tmp_path):
    with open_trace(tmp_path) as profile:
        assert sorted(as_rows(read_spans(profile, everything))) == sorted(expected(ROWS))


def test_a_slice_has_the_spans_of_its_range(tmp_path):
    with open_trace(tmp_path) as profile, profile.slice(60_000, 100_000) as part:
        found = sorted(as_rows(read_spans(part, everything)))
    assert found == sorted(expected([row for row in ROWS if row[3] < 100 and row[4] > 60]))


def test_spans_of_unknown_tracks_are_left_out(tmp_path):
    with open_trace(tmp_path, [*ROWS, (99, "lost", "kernel", 0, 1, None)]) as profile:
        assert "lost" not in [row[1] for row in as_rows(read_spans(profile, everything))]


@pytest.mark.parametrize("column", ["correlation_id", "category"])
def test_columns_that_a_part_lacks_are_empty(tmp_path, column):
    with open_trace(tmp_path) as profile:
        parts = sorted((profile.path / "TraceSpan").glob("*.parquet"))
    for part in parts:
        pq.write_table(pq.read_table(part).drop_columns([column]), part)
    with neuron_tools.open_profile(profile.path) as profile:
        found = as_rows(read_spans(profile, everything))
    place, empty = (5, NO_CORRELATION) if column == "correlation_id" else (2, "")
    assert len(found) == len(ROWS)
    assert {row[place] for row in found} == {empty}


def test_device_spans_stand_by_stream_with_the_calls_that_launched_them(tmp_path):
    late = (COMPUTE, "late", "kernel", 400, 410, 77)
    with open_trace(tmp_path, [late, *ROWS]) as profile:
        spans = load_device_spans(profile)
    names = [spans.names[code] for code in spans.name.tolist()]
    assert names == ["gemm", "gelu", "gemm", "late", REDUCE]
    assert spans.call_start_ns.tolist() == [5000, 20_000, 215_000, NOT_LAUNCHED, 52_000]
    assert spans.call_end_ns.tolist() == [8000, 22_000, 218_000, NOT_LAUNCHED, 55_000]
    assert [len(stream) for stream in spans.streams()] == [4, 1]


def test_of_two_calls_with_one_correlation_the_first_launched_the_span(tmp_path):
    twice = (0, "cudaLaunchKernel", "cuda_runtime", 6, 7, 1)
    with open_trace(tmp_path, [twice, *ROWS]) as profile:
        assert load_device_spans(profile).call_start_ns[0] == 5000


def test_distinct_numbers_are_numbered_as_they_come():
    numbers, which = distinct(np.array([7, -3, 7, 9, -3]))
    assert numbers.tolist() == [7, -3, 9]
    assert which.tolist() == [0, 1, 0, 2, 1]
