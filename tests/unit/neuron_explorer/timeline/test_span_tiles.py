"""Tiles of spans: nothing is lost and nothing is invented, at any resolution."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from neuron_explorer.timeline.parameters import BUCKETS, TileRange
from neuron_explorer.timeline.span_tiles import SCHEMA, span_tiles
from tests.unit.neuron_explorer.timeline.small_profile import INSTRUCTIONS

END_NS = 6100


def rows_of(table, tiles=1):
    """Rows of each tile."""
    rows = table.to_pylist()
    return [[row for row in rows if row["tile"] == tile] for tile in range(tiles)]


def test_near_spans_stand_as_they_are(profile, places):
    table = span_tiles(profile, [places["engine/Tensor"]], TileRange(0, 0, 1))
    assert table.schema.equals(SCHEMA)
    (rows,) = rows_of(table)
    assert [(row["start"], row["duration"], row["count"], row["is_bucket"]) for row in rows[:2]] == [
        (10, 6, 1, 0),
        (30, 6, 1, 0),
    ]
    assert {row["name"] for row in rows} == {"MATMUL"}
    first = profile.row("Instruction", rows[0]["row"])
    assert (first["start_ts"], first["opcode"]) == (10, "MATMUL")


def test_far_spans_are_counted_in_buckets_that_are_as_busy_as_they_are(profile, places):
    level = 6
    (rows,) = rows_of(span_tiles(profile, [places["engine/Tensor"]], TileRange(level, 0, 1)))
    assert all(row["is_bucket"] for row in rows)
    assert sum(row["count"] for row in rows) == INSTRUCTIONS // 2
    busy_ns = sum(row["busy"] / 255 for row in rows) * (1 << level)
    assert busy_ns == pytest.approx(INSTRUCTIONS // 2 * 6, rel=0.03)


@settings(deadline=None, max_examples=30)
@given(level=st.integers(0, 12), data=st.data())
def test_every_span_is_counted_once_whatever_the_level(profile, places, level, data):
    tiles = -(-END_NS // (BUCKETS << level))
    place = places[
        data.draw(st.sampled_from(["engine/Tensor", "engine/Vector", "hlo", "dma_queue/qSyncIn0"]))
    ]
    table = span_tiles(profile, [place], TileRange(level, 0, tiles))
    assert set(table.column("tile").to_pylist()) <= set(range(tiles))
    assert sum(table.column("count").to_pylist()) == profile.tracks()[place].spans


def test_a_span_over_several_tiles_stands_in_each(profile, places):
    tiles = rows_of(span_tiles(profile, [places["hlo"]], TileRange(0, 0, 2)), 2)
    second = (
        [row for row in tiles[0] if row["name"] == "fusion.1"],
        [row for row in tiles[1] if row["name"] == "fusion.1"],
    )
    assert [(row["start"], row["duration"]) for row in second[0]] == [(600, 596)]
    assert [(row["start"], row["duration"]) for row in second[1]] == [(600 - BUCKETS, 596)]


def test_rows_come_by_track_depth_and_time(profile, places):
    chosen = sorted(places[name] for name in ("engine/Tensor", "dma_queue/qSyncIn0"))
    table = span_tiles(profile, chosen, TileRange(2, 0, 2))
    keys = np.array([table.column(name).to_numpy() for name in ("start", "depth", "track", "tile")])
    assert (np.lexsort(keys) == np.arange(table.num_rows)).all()
    assert set(table.column("track").to_pylist()) == set(chosen)
    assert set(table.column("depth").to_pylist()) == {0, 1}


def test_times_count_from_the_origin(profile, places):
    place = [places["engine/Tensor"]]
    (moved,) = rows_of(span_tiles(profile, place, TileRange(0, 0, 1), origin_ns=1000))
    assert moved[0]["start"] == 10
    assert profile.row("Instruction", moved[0]["row"])["start_ts"] == 1010


def test_a_range_without_spans_is_empty(profile, places):
    assert span_tiles(profile, [places["hlo"]], TileRange(0, 99, 3)).num_rows == 0


def test_empty_tiles_leave_their_number_to_others(profile, places):
    table = span_tiles(profile, [places["hlo"]], TileRange(0, -1, 3))
    assert set(table.column("tile").to_pylist()) == {1, 2}
