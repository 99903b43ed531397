"""The use of engines: the share of each window in which an engine runs anything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from neuron_explorer.timeline.parameters import BUCKETS, TileRange
from neuron_explorer.timeline.use_tiles import PERCENT, WINDOW_BUCKETS, has_use, use_tiles
from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.writer import ProfileWriter
from tests.unit.neuron_explorer.timeline.small_profile import filled


def values(table, place, tiles):
    """The value in each window of the tiles, held until the next."""
    windows = BUCKETS // WINDOW_BUCKETS
    found = np.full(tiles.count * windows, np.nan)
    for row in table.to_pylist():
        if row["track"] == place:
            assert row["least"] == row["mean"] == row["greatest"]
            found[row["tile"] * windows + row["bucket"] // WINDOW_BUCKETS :] = row["mean"]
    return found


@pytest.fixture
def profile_of(tmp_path):
    """A profile of one engine with these instructions, as (start, end)."""
    opened = []

    def make(spans):
        path = tmp_path / "run.nprof"
        with ProfileWriter(path, {"target": "trn2"}, overwrite=True) as writer:
            starts, ends = zip(*spans)
            columns = {
                "start_ts": list(starts), "end_ts": list(ends),
                "engine": ["Vector"] * len(spans), "opcode": ["ADD"] * len(spans),
            }  # fmt: skip
            writer.append("Instruction", filled("Instruction", columns))
        opened.append(open_profile(path))
        return opened[-1]

    yield make
    for profile in opened:
        profile.close()


def place_of(profile):
    (place,) = [place for place, track in enumerate(profile.tracks()) if has_use(track)]
    return place


def test_the_share_of_a_window_is_that_of_what_ran_in_it(profile_of):
    profile = profile_of([(0, 8), (16, 32), (40, 44)])
    tiles = TileRange(0, 0, 1)
    table = use_tiles(profile, [place_of(profile)], tiles)
    assert values(table, place_of(profile), tiles)[:4].tolist() == [50, 100, 25, 0]
    assert table.num_rows == 4  # where it changes


def test_instructions_that_overlap_count_once(profile_of):
    profile = profile_of([(0, 12), (4, 8), (8, 16)])
    assert profile.tracks()[place_of(profile)].depths > 1
    tiles = TileRange(0, 0, 1)
    found = values(use_tiles(profile, [place_of(profile)], tiles), place_of(profile), tiles)
    assert found[:2].tolist() == [100, 0]


@settings(deadline=None, max_examples=15)
@given(level=st.integers(0, 12), first=st.integers(-1, 3), count=st.integers(1, 3))
def test_the_mean_over_a_range_is_the_active_share(profile, places, level, first, count):
    place, tiles = places["engine/Tensor"], TileRange(level, first, count)
    found = values(use_tiles(profile, [place], tiles), place, tiles)
    spans = profile.spans(profile.tracks()[place], tiles.start_ns, tiles.end_ns, limit=100_000)
    start = np.maximum(spans.column("start_ns").to_numpy(), tiles.start_ns)
    end = spans.column("start_ns").to_numpy() + spans.column("duration_ns").to_numpy()
    active = (np.minimum(end, tiles.end_ns) - start).sum()
    assert found.mean() / PERCENT * (tiles.end_ns - tiles.start_ns) == pytest.approx(active, rel=0.01, abs=2)


def test_more_spans_than_a_union_is_made_of_are_told_by_the_busiest_row(profile_of, monkeypatch):
    monkeypatch.setattr("neuron_explorer.timeline.use_tiles.MOST_SPANS", 2)
    profile = profile_of([(0, 12), (4, 8), (8, 16)])
    tiles = TileRange(0, 0, 1)
    found = values(use_tiles(profile, [place_of(profile)], tiles), place_of(profile), tiles)
    assert found[0] == 75
