"""Tiles of charged time: no overlap, as long as what is charged; envelopes where a range holds too much."""

import pyarrow as pa
import pytest
from flask import Flask

from neuron_explorer.timeline.charged_tiles import ChargedTiles, is_charged
from neuron_explorer.timeline.parameters import TileRange
from neuron_explorer.timeline.routes import register
from neuron_explorer.timeline.span_tiles import SCHEMA
from neuron_profile.analysis.time import core_window
from neuron_profile.analysis.time.charges import charge_device_time
from neuron_tools.profile.reader import open_profile


def charged_ns(profile):
    return {name: ns for name, ns in charge_device_time(profile, hlo="hlo_name").hlo.items() if name}


def by_name(rows):
    """Lengths of what begins in the tiles."""
    sums: dict[str, float] = {}
    for row in rows:
        sums[row["name"]] = sums.get(row["name"], 0) + row["duration"] * row["count"]
    return sums


def test_operations_are_charged_and_engines_are_not(profile, places):
    tracks = profile.tracks()
    assert is_charged(tracks[places["hlo"]])
    assert not is_charged(tracks[places["engine/Tensor"]])


def test_near_pieces_are_as_long_as_what_is_charged(profile, places):
    table = ChargedTiles().tiles(profile, [places["hlo"]], TileRange(0, 0, 6))
    assert table.schema.equals(SCHEMA)
    rows = table.to_pylist()
    assert {row["depth"] for row in rows} == {0}
    assert by_name(rows) == {name: pytest.approx(ns) for name, ns in charged_ns(profile).items()}
    assert profile.row("HloInstruction", rows[0]["row"])["hlo_name"] == rows[0]["name"]


def test_far_pieces_stand_in_buckets_that_are_as_busy(profile, places):
    level = 8
    rows = ChargedTiles().tiles(profile, [places["hlo"]], TileRange(level, 0, 1)).to_pylist()
    busy_ns = sum((row["busy"] / 255) * (1 << level) if row["is_bucket"] else row["duration"] for row in rows)
    assert busy_ns == pytest.approx(sum(charged_ns(profile).values()), rel=0.05)


def test_a_range_that_holds_too_much_shows_envelopes_in_one_row(profile, places, monkeypatch):
    monkeypatch.setattr(core_window, "MOST_SPANS", 10)
    with open_profile(profile.path) as opened:  # nothing of its ranges is kept
        rows = ChargedTiles().tiles(opened, [places["hlo"]], TileRange(0, 0, 6)).to_pylist()
    assert {row["depth"] for row in rows} == {0}
    assert max(row["duration"] for row in rows) == 596


@pytest.mark.parametrize("range_ns", [(10, 300), (0, 596), (83_720_000, 84_916_000), (10**9 + 7, 3 * 10**9)])
@pytest.mark.parametrize("pixels", [1500, 1900, 3000])
def test_what_a_wide_timeline_shows_is_read_for_the_panels(profile, monkeypatch, range_ns, pixels):
    read: list[tuple[int, int]] = []
    monkeypatch.setattr(core_window.CoreWindow, "around", lambda self, *span: read.append(span) or span)
    core_window.core_window(profile, (0, 0)).aligned(*range_ns)
    tiles = TileRange.around(*range_ns, pixels)
    ((low, high),) = read
    assert low <= tiles.start_ns
    assert tiles.end_ns <= high
    assert high - low <= max(1 << 11, 4 * (range_ns[1] - range_ns[0]))


def test_what_is_lit_is_part_of_what_is_charged(profile, places):
    class Library:
        def get(self, wanted):
            return profile

    server = Flask("test")
    register(server, Library())
    asked = f"/data/any/charged?level=0&tile=0&tiles=6&tracks={places['hlo']}&by=name&value=fusion.1"
    answer = server.test_client().get(asked)
    rows = pa.ipc.open_stream(answer.get_data()).read_all().to_pylist()
    assert by_name(rows) == {"fusion.1": pytest.approx(charged_ns(profile)["fusion.1"])}


def test_tracks_tell_what_of_them_lies_in_the_range_that_is_opened(profile, places):
    class Library:
        def get(self, wanted):
            return profile

    server = Flask("test")
    register(server, Library())
    tracks = server.test_client().get("/data/any/tracks?start=0&end=100").get_json()["tracks"]
    assert tracks[places["engine/Tensor"]]["in_range"] == {"count": 5, "busy_share": pytest.approx(0.3)}
    assert tracks[places["hlo"]]["charged"]
    assert not tracks[places["engine/Tensor"]]["charged"]
    last = server.test_client().get("/data/any/tracks?start=7000&end=7100").get_json()["tracks"]
    assert last[places["engine/Tensor"]]["in_range"] is None
