"""Rows read as they are stored give the same timeline as rows that a query sorts."""

import numpy as np
import pyarrow as pa
import pytest

from neuron_tools import open_profile
from neuron_tools.profile.export.source import Tables
from neuron_tools.profile.export.stored_rows import can_be_read_as_stored
from neuron_tools.profile.export.timeline_sources import DMA_TRANSFERS, HOST_SPANS, INSTRUCTIONS
from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.store import parts
from neuron_tools.profile.writer import ProfileWriter
from tests.fixtures.synthetic_profile import synthetic_profile
from tests.fixtures.timelines import timeline_of

NAMES = ("ProcessInfo", "Instruction", "DmaPacketAggregated", "HloInstruction", "CcOp", "Flow", "HostSpan")


class SqlAlone:
    """A profile that answers queries, and nothing else."""

    def __init__(self, profile):
        self.sql = profile.sql


def filled(name, table):
    """The table with something in every column that its schema wants."""
    for field in TABLES[name].fields:
        column = table.column(field.name)
        if field.required and column.null_count:
            nothing = {"string": "", "list<int64>": [], "list<string>": []}.get(field.type, 0)
            place = table.column_names.index(field.name)
            kind = pa.string() if field.type == "string" else column.type
            table = table.set_column(place, field.name, column.cast(kind).fill_null(nothing))
    return table


def written(directory, monkeypatch, *, shuffled=False, rows=60):
    """The synthetic profile in windows of 32 rows, in order of time or in any order."""
    monkeypatch.setattr(parts, "MAX_WINDOW_ROWS", 32)
    monkeypatch.setattr(parts, "MIN_WINDOW_ROWS", 32)
    tables = synthetic_profile(rows).tables
    with ProfileWriter(directory, {}) as writer:
        for name in NAMES:
            table = filled(name, tables[name])
            if shuffled:
                table = table.take(np.random.default_rng(1).permutation(table.num_rows))
            elif "start_ts" in table.column_names:
                table = table.sort_by("start_ts")
            writer.append(name, table)
    return directory


@pytest.mark.parametrize("flows", [True, False])
def test_stored_rows_make_the_timeline_that_queries_make(tmp_path, monkeypatch, flows):
    with open_profile(written(tmp_path / "p.nprof", monkeypatch)) as profile:
        for source in (INSTRUCTIONS, DMA_TRANSFERS):
            assert can_be_read_as_stored(source, profile, Tables(profile), flows=flows)
        stored, queried = timeline_of(profile, flows=flows), timeline_of(SqlAlone(profile), flows=flows)
    assert sum(stored.spans.values()) > 1200
    assert stored.spans == queried.spans
    assert stored.edges == queried.edges
    assert bool(stored.edges) == flows


def test_rows_in_any_order_are_left_to_queries(tmp_path, monkeypatch):
    ordered, shuffled = (
        open_profile(written(tmp_path / f"{name}.nprof", monkeypatch, shuffled=name == "b")) for name in "ab"
    )
    with ordered, shuffled:
        assert not can_be_read_as_stored(INSTRUCTIONS, shuffled, Tables(shuffled), flows=False)
        assert timeline_of(shuffled, flows=False).spans == timeline_of(ordered, flows=False).spans


def test_nested_spans_and_parts_of_a_profile_are_left_to_queries(tmp_path, monkeypatch):
    with open_profile(written(tmp_path / "p.nprof", monkeypatch, rows=50)) as profile:
        assert not can_be_read_as_stored(HOST_SPANS, profile, Tables(profile), flows=False)
        with profile.slice(100, 2000) as part:
            assert not can_be_read_as_stored(INSTRUCTIONS, part, Tables(part), flows=False)
            assert timeline_of(part).spans == timeline_of(SqlAlone(part)).spans


def test_names_and_tracks_have_the_same_second_choices(tmp_path):
    rows = [
        ("load", "w", "q1", 0), ("load", "unknown", "", 3), ("", "", "", 3), ("", "unknown", "q1", 0),
        ("store", "", "q1", 0),
    ]  # fmt: skip
    start = np.arange(len(rows), dtype=np.int64) * 10
    columns = dict(zip(("op", "variable", "queue_name", "queue_idx"), map(list, zip(*rows))))
    table = synthetic_profile(20).tables["DmaPacketAggregated"].slice(0, len(rows))
    full = filled("DmaPacketAggregated", table).to_pydict()
    with ProfileWriter(tmp_path / "p.nprof", {}) as writer:
        times = {"start_ts": start, "end_ts": start + 5, "duration_ns": np.full(len(rows), 5)}
        writer.append("DmaPacketAggregated", {**full, **columns, **times})
    with open_profile(tmp_path / "p.nprof") as profile:
        stored, queried = timeline_of(profile), timeline_of(SqlAlone(profile))
    assert stored.spans == queried.spans
    assert sorted((key[0][-1], key[1]) for key in stored.spans) == [
        ("q1", "store"), ("q1", "transfer"), ("q1", "w"), ("queue 3", "load"), ("queue 3", "transfer"),
    ]  # fmt: skip
