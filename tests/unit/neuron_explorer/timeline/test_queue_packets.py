"""DMA packets stand on their engines and below the transfers of their queue: found once, compared on both."""

from __future__ import annotations

import json

import pytest

from neuron_explorer.timeline.deltas import span_deltas
from neuron_explorer.timeline.lit_spans import LitSpans
from neuron_explorer.timeline.range_statistics import range_names
from neuron_explorer.timeline.span_queries import range_query
from neuron_tools.profile.importers import import_traces
from neuron_tools.profile.reader import open_profile

QUEUE, ENGINE = "p0/core0/dma_packet/qSyncIn0", "p0/core0/dma_engine/4"


def packet(number, start, engine, queue):
    """A packet of AWS's device profile JSON."""
    return {
        "id": number, "packet_aggregation_id": 7, "timestamp": start, "duration": 8, "aggregated": "no",
        "dma_engine": engine, "dma_queue": 0, "subgroup": queue, "variable": "weights", "read_size": 512,
        "write_size": 512, "transfer_size": 512, "nc_idx": 0, "packet_idx": number,
    }  # fmt: skip


@pytest.fixture
def imported_at(tmp_path):
    """Imports packets of two queues, the first of which waits between its two."""

    def make(name, longer=0):
        packets = [
            packet(1, 0, 4, "qSyncIn0"),
            packet(2, 64 + longer, 5, "qSyncIn0"),
            packet(3, 8, 4, "qActIn0"),
        ]
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"dma": packets, "instruction": []}))
        return import_traces([path], tmp_path / f"{name}.nprof").path

    return make


def test_a_queue_shows_its_packets_below_the_transfers_that_enclose_them(imported_at):
    with open_profile(imported_at("a")) as profile:
        tracks = {track.name: track for track in profile.tracks()}
        names = [track.name for track in profile.tracks() if track.headings[-1] == "DMA queues"]
        transfers, packets = (
            profile.timeline(tracks[name], 0, 72, 9)["busy_share"].to_pylist()
            for name in ("qSyncIn0", "qSyncIn0 packets")
        )
    assert names == ["qActIn0", "qActIn0 packets", "qSyncIn0", "qSyncIn0 packets"]
    assert tracks["qSyncIn0 packets"].id == QUEUE
    assert transfers == [1.0] * 9
    assert packets == [1.0, 1.0]  # what lies between has none


def test_sums_and_queries_are_of_the_packets_of_the_queue(imported_at):
    with open_profile(imported_at("a")) as profile:
        tracks = {track.id: track for track in profile.tracks()}
        found = [range_names(profile, tracks[name], 0, 100)["names"] for name in (QUEUE, ENGINE)]
        rows = [
            profile.query(range_query(profile, tracks[name], 0, 100)).num_rows for name in (QUEUE, ENGINE)
        ]
    assert [(row["count"], row["time_ns"]) for (row,) in found] == [(2, 16), (2, 16)]
    assert rows == [2, 2]


def test_packets_are_lit_on_both_and_found_once(imported_at):
    with open_profile(imported_at("a")) as profile:
        ids = [track.id for track in profile.tracks()]
        lit = LitSpans().of(profile, "name", "weights")
        hits = [profile.search(text) for text in ("weights", "packet_idx=2")]
    assert {QUEUE, ENGINE} <= {ids[place] for place in lit}
    on_packets = [[name for name in hit["track"].to_pylist() if "packet" in ids[name]] for hit in hits]
    assert on_packets == [[], []]
    assert hits[1].num_rows == 1


def test_packets_of_two_profiles_are_compared_on_both(imported_at):
    with open_profile(imported_at("a")) as new, open_profile(imported_at("b", longer=8)) as base:
        found = span_deltas(new, base)["tracks"]
    assert {QUEUE, ENGINE} <= found.keys()
    assert found[QUEUE][0]["new_count"] == 2
