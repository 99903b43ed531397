"""Ranks that did not run are drawn from those that they are like."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_tools import open_profile
from neuron_tools.profile.writer import ProfileWriter

STRIDE, REPLICAS, RUNNING = 256, 3, 2


def spans(process, names, table_id):
    count = len(names)
    start = np.arange(count) * 100 + process
    return {
        "id": np.arange(count) + table_id,
        "start_ts": start,
        "end_ts": start + 50,
        "duration_ns": np.full(count, 50),
        "process_idx": np.full(count, process, np.int32),
        "track_idx": np.zeros(count, np.int32),
        "name": names,
    }


@pytest.fixture
def profile(tmp_path):
    """Two processes that ran and two replicas of each; process 256 has a track of its own besides."""
    rank = [process + replica * RUNNING for replica in range(REPLICAS) for process in range(RUNNING)]
    with ProfileWriter(tmp_path / "p.nprof", {}) as writer:
        for process in range(RUNNING):
            names = [f"s{process}{place}" for place in range(4)]
            writer.append("TraceSpan", spans(process, names, 10 * process))
        writer.append("TraceSpan", spans(STRIDE, ["own"], 100))
        writer.append(
            "ProcessInfo",
            {
                "process_idx": [process + STRIDE * r for r in range(REPLICAS) for process in range(RUNNING)],
                "rank": rank,
                "replica_of_rank": [None if each < RUNNING else each % RUNNING for each in rank],
                "name": [None if each < RUNNING else f"as rank {each % RUNNING}" for each in rank],
            },
        )
    with open_profile(tmp_path / "p.nprof") as opened:
        yield opened


def test_each_replica_has_the_tracks_of_the_rank_it_is_like(profile):
    of_replicas = [track for track in profile.tracks() if track.replica_of]
    assert sorted((track.process_idx, track.rank, track.replica_of[:2]) for track in of_replicas) == [
        (257, 3, "p1"), (512, 4, "p0"), (513, 5, "p1"),
    ]  # fmt: skip
    assert {track.headings[0] for track in of_replicas if track.rank == 4} == {"rank 4: as rank 0"}
    ranks = [track.rank for track in profile.tracks()]
    assert ranks == sorted(ranks)


def test_they_are_drawn_from_it(profile):
    tracks = profile.tracks()
    drawn = profile.timelines(pixels=50)
    by_track = {place: [] for place in range(len(tracks))}
    for row in drawn.to_pylist():
        by_track[row["track"]].append((row["pixel"], row["span_name"], row["count"]))
    places = {track.id: place for place, track in enumerate(tracks)}
    for place, track in enumerate(tracks):
        assert by_track[place]
        if track.replica_of:
            assert by_track[place] == by_track[places[track.replica_of]]
    one = next(track for track in tracks if track.replica_of)
    assert profile.spans(one).equals(profile.spans(one.replica_of))
    assert profile.timeline(one, pixels=7).equals(profile.timeline(one.replica_of, pixels=7))


def test_a_search_finds_what_ran(profile):
    tracks = profile.tracks()
    assert [tracks[place].process_idx for place in profile.search("s12").column("track").to_pylist()] == [1]
    assert [tracks[place].process_idx for place in profile.search("own").column("track").to_pylist()] == [
        STRIDE
    ]
