"""Spans are colored by what they belong to: by the rows of their tables, the largest groups first."""

from __future__ import annotations

import pytest

from neuron_explorer.timeline.parameters import ParameterError, TileRange
from neuron_explorer.timeline.span_groups import OTHER, WAITS, SpanGroups, group_names
from neuron_explorer.timeline.span_tiles import span_tiles
from neuron_tools import open_profile

LAYERS = ["/m/b", "/m/a", None, "/m/b", "/m/c"]


@pytest.fixture
def profile(make_profile, tiny_tables):
    """The tiny profile, its five instructions in modules, at lines, and waiting."""
    instructions = {
        **tiny_tables["Instruction"], "layer": LAYERS, "source_file": ["train.py"] * 5,
        "source_line": [3, 3, 4, 3, 3], "evt_wait_time_ns": [0, 5, 5, 0, 0],
        "dma_wait_time_ns": [0, 0, 9, 0, 0],
    }  # fmt: skip
    with open_profile(make_profile(tables={**tiny_tables, "Instruction": instructions})) as opened:
        yield opened


def colored(profile, by):
    """Group of each row of Instruction that is drawn; None for the others."""
    tracks = profile.tracks()
    places = [place for place, track in enumerate(tracks) if track.table == "Instruction"]
    tiles = span_tiles(profile, places, TileRange(0, 0, 4))
    found = SpanGroups().add_slots(profile, by, tiles)
    names = group_names(profile, by)
    rows, slots = (found.column(name).to_pylist() for name in ("row", "slot"))
    return {row: None if slot == OTHER else names[slot] for row, slot in zip(rows, slots, strict=True)}


def stored(profile, column):
    batches = profile.stored_batches("Instruction", [column])
    return dict(enumerate(value for batch in batches for value in batch.column(column).to_pylist()))


def test_modules_have_the_color_of_their_group(profile) -> None:
    assert set(group_names(profile, "module")) == {"/m/a", "/m/b", "/m/c"}
    shown = colored(profile, "module")
    layers = stored(profile, "layer")
    assert shown
    assert shown == {row: layers[row] for row in shown}


def test_lines_and_waits_have_theirs(profile) -> None:
    lines = stored(profile, "source_line")
    assert all(place == f"train.py:{lines[row]}" for row, place in colored(profile, "line").items())
    events, transfers = stored(profile, "evt_wait_time_ns"), stored(profile, "dma_wait_time_ns")
    expected = {
        row: WAITS[2] if transfers[row] > events[row] else WAITS[1] if events[row] else WAITS[0]
        for row in events
    }
    shown = colored(profile, "wait")
    assert shown == {row: expected[row] for row in shown}


def test_tracks_that_tell_nothing_of_it_are_others(profile) -> None:
    places = [place for place, track in enumerate(profile.tracks()) if track.level == "execution"]
    tiles = span_tiles(profile, places, TileRange(2, 0, 4))
    assert set(SpanGroups().add_slots(profile, "module", tiles).column("slot").to_pylist()) == {OTHER}
    with pytest.raises(ParameterError, match="take one of module"):
        group_names(profile, "moon")
