import numpy as np
import pytest

from neuron_tools import open_profile
from neuron_tools.profile.reader import TimelineError
from neuron_tools.profile.timeline.pixels import pixel_edges
from tests.unit.profile.builders import sound_tables, write_profile
from tests.unit.profile.timeline.traces import brute_force, serial_spans, write_spans


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """50 000 spans on one track: enough for several levels of windows."""
    start, duration = serial_spans(0, 50_000)
    directory = write_spans(tmp_path_factory.mktemp("serial") / "p.nprof", start, duration, chunks=3)
    return directory, start, duration


def drawn(batch, pixels):
    count, busy = np.zeros(pixels, np.int64), np.zeros(pixels)
    place = batch.column("pixel").to_numpy()
    np.add.at(count, place, batch.column("count").to_numpy())
    np.add.at(busy, place, batch.column("busy_share").to_numpy())
    return count, busy


@pytest.mark.parametrize("pixels", [1, 7, 100, 2000])
def test_the_full_range_counts_every_span_and_all_busy_time(serial, pixels):
    directory, start, duration = serial
    with open_profile(directory) as profile:
        count, busy = drawn(profile.timeline("p0/trace/0", pixels=pixels), pixels)
        edges = pixel_edges(*profile.time_range_ns(), pixels)
    assert count.sum() == len(start)
    assert (busy * np.diff(edges)).sum() == pytest.approx(duration.sum(), rel=1e-4)


@pytest.mark.parametrize("zoom", [1, 3, 10, 100, 1000])
def test_any_range_shows_what_a_loop_over_the_spans_shows(serial, zoom):
    directory, start, duration = serial
    random = np.random.default_rng(zoom)
    with open_profile(directory) as profile:
        first, last = profile.time_range_ns()
        for _ in range(10):
            low = int(random.integers(first, last - (last - first) // zoom + 1))
            edges = pixel_edges(low, low + (last - first) // zoom, 200)
            batch = profile.timeline("p0/trace/0", int(edges[0]), int(edges[-1]), 200)
            count, busy = drawn(batch, 200)
            wanted_count, wanted_busy = brute_force(start, duration, edges)
            # A window may count one pixel early: sums up to any pixel differ by one pixel's at most.
            ahead = np.cumsum(count) - np.cumsum(wanted_count)
            assert -wanted_count[0] <= ahead.min()
            assert np.all(ahead <= np.append(wanted_count[1:], wanted_count[-1]) + 40)
            assert np.abs(np.cumsum(busy) - np.cumsum(wanted_busy)).max() <= 1


def test_near_by_the_pixels_are_exact(serial):
    directory, start, duration = serial
    with open_profile(directory) as profile:
        edges = pixel_edges(int(start[1000]), int(start[1200]), 500)
        batch = profile.timeline("p0/trace/0", int(edges[0]), int(edges[-1]), 500)
        count, busy = drawn(batch, 500)
    wanted_count, wanted_busy = brute_force(start, duration, edges)
    np.testing.assert_array_equal(count, wanted_count)
    np.testing.assert_allclose(busy, wanted_busy, atol=1e-6)


def test_the_span_that_shows_is_the_longest_or_the_one_that_covers_the_pixel(tmp_path):
    start, duration = np.array([0, 40, 45, 300]), np.array([10, 2, 3, 1000])
    directory = write_spans(tmp_path / "p.nprof", start, duration, names=["a", "b", "c", "long"])
    with open_profile(directory) as profile:
        rows = profile.timeline("p0/trace/0", 0, 1000, 10).to_pylist()
    assert [(row["pixel"], row["span_name"], row["count"]) for row in rows] == [
        (0, "a", 3), (3, "long", 1), *((pixel, "long", 0) for pixel in range(4, 10)),
    ]  # fmt: skip
    assert [row["span_row"] for row in rows[:2]] == [0, 3]
    assert (rows[1]["span_start_ns"], rows[1]["span_duration_ns"], rows[5]["busy_share"]) == (300, 1000, 1.0)


def test_spans_come_exactly_and_lead_to_their_rows(serial):
    directory, start, duration = serial
    with open_profile(directory) as profile:
        low, high = int(start[700]), int(start[900])
        found = profile.spans("p0/trace/0", low, high)
        place = np.searchsorted(found.column("start_ns").to_numpy(), start[800])
        row = profile.row("TraceSpan", found.column("row")[int(place)].as_py())
        few = profile.spans("p0/trace/0", low, high, limit=3)
    inside = (start < high) & ((start + duration > low) | (start >= low))
    np.testing.assert_array_equal(found.column("start_ns").to_numpy(), start[inside])
    np.testing.assert_array_equal(found.column("duration_ns").to_numpy(), duration[inside])
    assert row["start_ts"] == start[800]
    assert row["name"] == found.column("name")[int(place)].as_py()
    assert few.num_rows == 3


def test_enclosed_spans_stand_below_those_that_enclose_them(tmp_path):
    start, duration = np.array([0, 10, 20, 60, 200]), np.array([100, 40, 10, 30, 10])
    directory = write_spans(tmp_path / "p.nprof", start, duration, names=list("abcde"))
    with open_profile(directory) as profile:
        (track,) = profile.tracks()
        found = profile.spans(track).to_pylist()
    assert track.depths == 3
    assert {row["name"]: row["depth"] for row in found} == {"a": 0, "b": 1, "c": 2, "d": 1, "e": 0}


def test_tracks_of_a_captured_profile(tmp_path):
    tables = sound_tables()
    tables["FrameworkInstruction"][0]["layer"] = "/model/fc"
    with open_profile(write_profile(tmp_path / "p.nprof", tables)) as profile:
        tracks = profile.tracks()
        modules = profile.spans("p0/core0/module").to_pylist()
    assert [track.id for track in tracks] == [
        "p0/core0/module", "p0/core0/framework", "p0/core0/hlo", "p0/core0/engine/Tensor",
        "p0/core0/engine/Scalar", "p0/core0/engine/Sync", "p0/core0/dma_queue/qSyncIn0",
    ]  # fmt: skip
    assert [(row["name"], row["depth"]) for row in modules] == [("model", 0), ("fc", 1)]
    assert tracks[0].headings == ("Process 0", "NeuronCore 0")
    assert tracks[-1].headings == ("Process 0", "NeuronCore 0", "DMA queues")


@pytest.mark.parametrize(
    ("command", "heading"),
    [
        ("/opt/venv/bin/python -u ddp.py", "rank 1: python -u ddp.py"),
        ("/opt/bin/python /opt/bin/torchrun -n 2 /a/b.py", "rank 1: python torchrun -n 2 /a/b.py"),
        ("python -c 'a/b'", "rank 1: python -c 'a/b'"),
    ],
)
def test_a_process_is_headed_by_its_command_without_the_folders_of_programs(tmp_path, command, heading):
    tables = sound_tables()
    tables["ProcessInfo"] = [{"process_idx": 0, "rank": 1, "command": command}]
    with open_profile(write_profile(tmp_path / "p.nprof", tables)) as profile:
        assert profile.tracks()[0].headings[0] == heading


def test_declared_tracks_have_their_names_ranks_and_counters(tmp_path):
    declared = [
        {"track_idx": 1, "process_idx": 0, "name": "stream 7", "kind": "stream", "device_idx": 3},
        {"track_idx": 2, "process_idx": 0, "name": "memory", "kind": "counter", "unit": "bytes"},
    ]
    span = {"start_ts": 5, "end_ts": 9, "duration_ns": 4, "process_idx": 0, "track_idx": 1, "name": "gemm"}
    samples = [
        {"timestamp": t, "process_idx": 0, "track_idx": 2, "value": float(v)} for t, v in ((0, 4), (8, 2))
    ]
    tables = {
        "ProcessInfo": [{"process_idx": 0, "rank": 5, "name": "trainer"}],
        "TraceTrack": declared,
        "TraceSpan": [span],
        "TraceCounter": samples,
    }
    with open_profile(write_profile(tmp_path / "p.nprof", tables, derive=False)) as profile:
        counter, stream = profile.tracks()
        values = profile.timeline(counter, 0, 10, 10).to_pylist()
    assert (stream.id, stream.level, stream.name, stream.rank) == ("p0/trace/1", "stream", "stream 7", 5)
    assert stream.headings == ("rank 5: trainer", "Device 3")
    assert (counter.id, counter.unit, counter.is_counter) == ("p0/counter/2", "bytes", True)
    assert [(row["pixel"], row["least"], row["greatest"], row["count"]) for row in values] == [
        (0, 4.0, 4.0, 1), (8, 2.0, 2.0, 1),
    ]  # fmt: skip


def test_what_cannot_be_drawn_is_one_sentence(serial):
    with open_profile(serial[0]) as profile:
        with pytest.raises(TimelineError, match="no track 'p9'"):
            profile.timeline("p9")
        with pytest.raises(TimelineError, match="is empty"):
            profile.timeline("p0/trace/0", 5, 5)
        with pytest.raises(TimelineError, match="at least one"):
            profile.timeline("p0/trace/0", pixels=0)


def test_a_profile_without_spans_has_no_tracks(tmp_path):
    directory = write_profile(tmp_path / "p.nprof", {}, derive=False)
    with open_profile(directory) as profile:
        assert profile.tracks() == ()
        assert profile.timelines().num_rows == 0
