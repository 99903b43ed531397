"""Findings and warnings on the timeline: when each is, and what is told of it."""

from time import monotonic

import numpy as np
import pyarrow as pa
import pytest
from flask import Flask

from neuron_explorer.analyses import Analyses
from neuron_explorer.library import ProfileLibrary, profile_id
from neuron_explorer.page import Site
from neuron_explorer.tasks import Tasks
from neuron_explorer.timeline.band_routes import register
from neuron_explorer.timeline.bands import BandTrack, finding_bands, warning_bands
from neuron_explorer.timeline.lit_spans import LitSpans
from neuron_explorer.timeline.parameters import TileRange
from neuron_explorer.user_store import UserStore
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.writer import ProfileWriter
from tests.unit.neuron_explorer.timeline.small_profile import filled, write_small_profile

PATIENCE_S = 60.0


@pytest.fixture
def profile_with(tmp_path):
    """Make a profile of some rows, with what their tables need besides."""
    opened = []

    def make(tables):
        with ProfileWriter(tmp_path / "some.nprof", {"target": "trn2"}) as writer:
            for table, rows in tables.items():
                columns = {name: [row.get(name) for row in rows] for name in rows[0]}
                writer.append(table, filled(table, columns))
        opened.append(open_profile(tmp_path / "some.nprof"))
        return opened[-1]

    yield make
    for profile in opened:
        profile.close()


def transfers():
    """Three transfers: two in pieces of 64 bytes that touch, one in a single piece."""
    small = {"packet_count": 16, "transfer_bytes": 1024}
    return [
        {"start_ts": 100, "end_ts": 200, **small},
        {"start_ts": 200, "end_ts": 260, **small},
        {"start_ts": 500, "end_ts": 600, "packet_count": 1, "transfer_bytes": 64},
    ]


def test_small_transfers_are_one_stretch_where_they_touch(profile_with):
    bands = warning_bands(profile_with({"DmaPacketAggregated": transfers()}))
    assert [(band.name, *(times.tolist() for times in band.stretches)) for band in bands] == [
        ("Small DMA", [100], [260])
    ]


def test_each_kind_of_warning_has_a_row_of_its_own(profile_with):
    tables = {
        "DmaPacketAggregated": transfers(),
        "Throttle": [{"timestamp": 0, "duration": 50, "type": "", "k": 1, "n": 2}],
    }
    bands = warning_bands(profile_with(tables))
    assert [(band.name, band.depth) for band in bands] == [("Throttled", 0), ("Small DMA", 1)]


def test_a_rank_that_waits_says_for_whom(profile_with):
    tables = {
        "ProcessInfo": [{"process_idx": 0, "rank": 0}, {"process_idx": 1, "rank": 1}],
        "CcOp": [
            {"process_idx": 0, "trigger_start_ts": 10, "start_ts": 90, "end_ts": 100, "last_rank": 1},
            {"process_idx": 1, "trigger_start_ts": 80, "start_ts": 90, "end_ts": 100, "last_rank": 1},
        ],
    }
    (band,) = warning_bands(profile_with(tables))
    assert (band.name, band.stretches[0].tolist(), band.stretches[1].tolist()) == (
        "Waits for rank 1",
        [10],
        [90],
    )


def test_a_finding_is_where_its_line_runs_within_the_scope(profile):
    finding = Finding("fp32_matmul", "fp32 products", "Use bf16.", Place("train.py", 2), gain_ns=1500)
    whole = finding_bands(profile, [finding], LitSpans(), None)
    (band,) = finding_bands(profile, [finding], LitSpans(), (0, 100))
    assert band.name == "saves 1.50 µs: fp32 products"
    assert band.details["source_line"] == 2
    assert band.stretches[1].max() <= 100 < whole[0].stretches[1].max()


def test_tiles_of_bands_are_those_of_spans(profile):
    finding = Finding("fp32_matmul", "fp32 products", "Use bf16.", Place("train.py", 2))
    track = BandTrack("Findings", finding_bands(profile, [finding], LitSpans(), None))
    near, far = (pa.Table.from_batches(track.tiles(0, TileRange(level, 0, 1), 0)) for level in (0, 6))
    assert set(near["name"].to_pylist()) == {"fp32 products"}
    assert near["is_bucket"].to_pylist() == [0] * near.num_rows
    assert np.sum(far["count"].to_numpy()) == len(track.bands[0].stretches[0])


@pytest.fixture
def client(tmp_path):
    path = write_small_profile(tmp_path / "small.nprof")
    with ProfileLibrary([path]) as library:
        server = Flask("test")
        register(server, Site(library, Analyses(library), Tasks(), UserStore(tmp_path / "store")))
        yield server.test_client(), f"/data/{profile_id(path)}/bands"


def test_the_routes_wait_for_nobody_and_refuse_what_is_not_there(client):
    asked, at = client
    until = monotonic() + PATIENCE_S
    answer = asked.get(at).get_json()
    while not answer["ready"] and monotonic() < until:
        answer = asked.get(at).get_json()
    assert answer["ready"]
    assert all(track["level"] == "band" for track in answer["tracks"])
    assert asked.get(f"{at}/details?track=0&row=999").status_code == 400
    assert asked.get(f"{at}?scope_start=9&scope_end=3").status_code == 400
