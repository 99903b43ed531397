import numpy as np
import pytest

from neuron_tools.profile.timeline import lanes, levels
from neuron_tools.profile.timeline.blob import Blob, BlobWriter
from neuron_tools.profile.timeline.lane import Lane
from neuron_tools.profile.timeline.lane_table import LaneTable
from neuron_tools.profile.timeline.lanes import LaneWriter
from neuron_tools.profile.timeline.segment import Segment
from tests.unit.profile.timeline.traces import serial_spans


@pytest.fixture
def many_levels(monkeypatch):
    """Blocks of 64 spans and levels of few windows, so that a few thousand spans fill several."""
    monkeypatch.setattr(lanes, "BLOCK_SPANS", 64)
    monkeypatch.setattr(lanes, "FEWEST_SPANS", 100)
    monkeypatch.setattr(levels, "FEWEST_WINDOWS", 4)
    monkeypatch.setattr(levels, "SPANS_AT_ONCE", 50)


def built(folder, start, duration, rows, pieces=9):
    names = (np.arange(len(start)) % 5).astype(np.int32)
    with BlobWriter(folder / "blob") as blob:
        writer = LaneWriter(blob)
        for part in np.array_split(np.arange(len(start)), pieces):
            writer.append(Segment(start[part], duration[part], names[part], rows[part]))
        stored = writer.finish()
        blob.write_late()
        table = LaneTable.of([[stored]])
        table.store(blob)
    return Lane(table, 0, Blob(folder / "blob")), stored


@pytest.mark.parametrize("seed", range(5))
def test_every_level_tells_of_each_window_what_the_spans_tell(tmp_path, many_levels, seed):
    start, duration = serial_spans(seed, 3000, longest=5000)
    rows = np.random.default_rng(seed).permutation(len(start))
    lane, stored = built(tmp_path, start, duration, rows)
    assert len(stored["levels"]) > 3
    for level in stored["levels"]:
        size = 1 << level["shift"]
        view = lane.view(int(start[0]), int(lane.end_ns) + 1, size)
        assert view.window_ns == size
        windows, first, count = np.unique(start >> level["shift"], return_index=True, return_counts=True)
        np.testing.assert_array_equal(view.begin_ns[1:], (windows << level["shift"])[1:])
        np.testing.assert_array_equal(np.diff(view.first), count)
        np.testing.assert_array_equal(view.busy_ns[:-1], np.concatenate([[0], np.cumsum(duration)])[first])
        np.testing.assert_array_equal(view.until_ns, (start + duration)[first + count - 1])
        longest = [place + int(np.argmax(duration[place : place + n])) for place, n in zip(first, count)]
        found = view.longest(np.arange(len(windows)))
        np.testing.assert_array_equal(found.duration_ns, duration[longest])


def test_spans_are_found_by_number_across_blocks(tmp_path, many_levels):
    start, duration = serial_spans(7, 1000)
    for name, rows in (("runs", np.arange(1000) + 5), ("apart", np.arange(1000)[::-1].copy())):
        (tmp_path / name).mkdir()
        lane, _ = built(tmp_path / name, start, duration, rows)
        numbers = np.array([0, 1, 63, 64, 65, 400, 400, 999])
        found = lane.at(numbers)
        np.testing.assert_array_equal(found.start_ns, start[numbers])
        np.testing.assert_array_equal(found.duration_ns, duration[numbers])
        np.testing.assert_array_equal(found.row, rows[numbers])


def test_values_beyond_four_bytes_are_kept(tmp_path):
    start = np.array([0, 1 << 40, 1 << 41])
    duration = np.array([1 << 39, 1 << 34, 5])
    lane, _ = built(tmp_path, start, duration, np.array([1 << 33, 0, 7]), pieces=1)
    found = lane.at(np.arange(3))
    assert found.start_ns.tolist() == start.tolist()
    assert found.duration_ns.tolist() == duration.tolist()
    assert found.row.tolist() == [1 << 33, 0, 7]


def test_nothing_is_seen_before_and_after_the_spans(tmp_path):
    lane, _ = built(tmp_path, np.array([100, 200]), np.array([10, 10]), np.array([0, 1]), pieces=1)
    assert lane.view(0, 100, 1.0) is None
    assert lane.view(210, 400, 1.0) is None
    assert lane.view(205, 400, 1.0) is not None
