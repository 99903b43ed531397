"""Tiles of counters: extremes and means, and values that hold until the next sample."""

import pytest
from hypothesis import given, settings, strategies as st

from neuron_explorer.timeline.counter_tiles import counter_tiles, value_before
from neuron_explorer.timeline.parameters import TileRange


def rows_of(table, tiles):
    """Rows of each tile."""
    rows = table.to_pylist()
    return [[row for row in rows if row["tile"] == tile] for tile in range(tiles)]


def test_counters_give_extremes_and_means(profile, places):
    place = [places["counter/PendingDma"]]
    (rows,) = rows_of(counter_tiles(profile, place, TileRange(0, 0, 1)), 1)
    assert [(row["bucket"], row["mean"]) for row in rows[:3]] == [(0, 0), (100, 1), (200, 2)]
    (far,) = rows_of(counter_tiles(profile, place, TileRange(12, 0, 1)), 1)
    assert sum(row["count"] for row in far) == 60
    assert (far[0]["least"], far[0]["greatest"]) == (0, 6)


def test_a_value_holds_into_tiles_without_samples(profile, places):
    tiles = rows_of(counter_tiles(profile, [places["counter/PendingDma"]], TileRange(0, 1, 7)), 7)
    first = tiles[0][0]
    assert (first["bucket"], first["count"], first["mean"]) == (0, 0, 1000 // 100 % 7)
    last = tiles[6]  # from 7168 ns on: the last sample is at 5900 ns
    assert [(row["bucket"], row["count"], row["mean"]) for row in last] == [(0, 0, 59 % 7)]


@settings(deadline=None, max_examples=40)
@given(time_ns=st.integers(-50, 9000))
def test_the_value_before_a_time_is_that_of_the_last_sample(profile, places, time_ns):
    track = profile.tracks()[places["counter/PendingDma"]]
    found = value_before(profile, track, time_ns)
    last = min((time_ns - 1) // 100, 59)
    assert found == (None if time_ns <= 0 else pytest.approx(last % 7))


def test_nothing_is_made_up_before_the_first_sample(profile, places):
    tiles = rows_of(counter_tiles(profile, [places["counter/PendingDma"]], TileRange(0, -2, 2)), 2)
    assert tiles == [[], []]
