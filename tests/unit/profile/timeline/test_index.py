import json

import numpy as np
import pytest

from neuron_tools import open_profile
from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.timeline import track_builder
from neuron_tools.profile.timeline.view import INDEX_FOLDER
from tests.unit.profile.builders import columns, instruction, write_profile
from tests.unit.profile.timeline.traces import serial_spans, write_spans


def index_file(directory):
    return directory / INDEX_FOLDER / "index.json"


def signature(directory):
    return json.loads(index_file(directory).read_text())["signature"]


def test_a_finished_profile_has_its_index_and_keeps_it(tmp_path):
    directory = write_profile(tmp_path / "p.nprof", {"Instruction": [instruction("Tensor", 0, 5)]})
    written = index_file(directory).stat().st_mtime_ns
    with open_profile(directory) as profile:
        assert len(profile.tracks()) == 1
    assert index_file(directory).stat().st_mtime_ns == written


def test_the_index_is_built_anew_where_other_tables_stand(tmp_path):
    directory = write_profile(tmp_path / "p.nprof", {"Instruction": [instruction("Tensor", 0, 5)]})
    other = write_profile(tmp_path / "q.nprof", {"Instruction": [instruction("Vector", 0, 5)]})
    before = signature(directory)
    (part,) = (directory / "Instruction").iterdir()
    part.write_bytes(next((other / "Instruction").iterdir()).read_bytes())
    with open_profile(directory) as profile:
        assert [track.name for track in profile.tracks()] == ["Vector"]
    assert signature(directory) != before


@pytest.mark.parametrize("damage", ["missing", "cut", "nonsense"])
def test_a_damaged_index_is_built_anew(tmp_path, damage):
    directory = write_profile(tmp_path / "p.nprof", {"Instruction": [instruction("Tensor", 0, 5)]})
    if damage == "missing":
        (directory / INDEX_FOLDER / "index.bin").unlink()
    elif damage == "cut":
        (directory / INDEX_FOLDER / "index.bin").write_bytes(b"")
    else:
        index_file(directory).write_text('{"version": 2, "tracks": 5}')
    with open_profile(directory) as profile:
        assert profile.timeline("p0/core0/engine/Tensor", pixels=1).num_rows == 1


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("tracks", 0, "start_ns"), "0"),
        (("tracks", 0, "end_ns"), {}),
        (("tracks", 0, "end_ns"), 1 << 70),
        (("tracks", 0, "headings"), [1]),
        (("tracks", 0, "samples", "start_ns"), None),
        (("tracks", 0, "samples", "value"), [1 << 70, "f8", 2]),
        (("tracks", 0, "samples", "least"), [0, "u1", 1]),
        (("tracks",), []),
        (("lanes", 0, 1), None),
        (("lanes", 2, 1), "f8"),
        (("names", "bytes", 2), 1 << 63),
    ],
)
def test_an_index_that_says_what_cannot_be_is_built_anew(tmp_path, place, value):
    tables = {
        "Instruction": [instruction("Tensor", 0, 5)],
        "TraceCounter": [{"timestamp": t, "process_idx": 0, "track_idx": 2, "value": 1.0} for t in (1, 3)],
    }
    directory = write_profile(tmp_path / "p.nprof", tables)
    header = json.loads(index_file(directory).read_text())
    inner = header
    for name in place[:-1]:
        inner = inner[name]
    assert inner[place[-1]] != value
    inner[place[-1]] = value
    index_file(directory).write_text(json.dumps(header))
    with open_profile(directory) as profile:
        assert profile.time_range_ns() == (0, 5)
        assert all(profile.timeline(track, pixels=1).num_rows == 1 for track in profile.tracks())


def test_an_unfinished_profile_gets_its_index_when_it_is_opened(tmp_path):
    rows = {"Instruction": [instruction("Tensor", 0, 5)]}
    directory = write_profile(tmp_path / "p.nprof", rows, complete=False, derive=False)
    assert not index_file(directory).exists()
    with open_profile(directory) as profile:
        assert profile.tracks()[0].spans == 1


def test_rows_in_any_order_and_any_windows_give_the_same_timeline(tmp_path, monkeypatch):
    monkeypatch.setattr(track_builder, "BLOCK_SPANS", 256)
    start, duration = serial_spans(3, 3000)
    order = np.random.default_rng(0).permutation(len(start))
    sorted_way = write_spans(tmp_path / "a.nprof", start, duration, names=["x"] * 3000)
    other_way = write_spans(tmp_path / "b.nprof", start[order], duration[order], names=["x"] * 3000, chunks=7)
    drawn = []
    for directory in (sorted_way, other_way):
        with open_profile(directory) as profile:
            drawn.append(profile.timeline("p0/trace/0", pixels=50).drop_columns(["span_row"]).to_pylist())
    assert drawn[0] == drawn[1]


def test_rows_lead_back_to_the_table_however_they_were_sorted(tmp_path):
    start, duration = serial_spans(4, 500)
    order = np.random.default_rng(1).permutation(len(start))
    directory = write_spans(tmp_path / "p.nprof", start[order], duration[order], chunks=3)
    with open_profile(directory) as profile:
        for span in profile.spans("p0/trace/0").to_pylist()[::50]:
            row = profile.row("TraceSpan", span["row"])
            assert (row["start_ts"], row["name"]) == (span["start_ns"], span["name"])


def test_every_table_of_spans_becomes_tracks(tmp_path):
    """A row of each table, of the least that its schema wants, shows up on the timeline."""
    from neuron_tools.profile.timeline.sources import SPAN_SOURCES

    values = {"string": "a", "int64": 0, "int32": 0, "float64": 0.0, "bool": False}
    values |= {"list<int64>": [0], "list<string>": ["a"]}
    tables = {}
    for name in {source.table for source in SPAN_SOURCES}:
        row = {field.name: values[field.type] for field in TABLES[name].fields if field.required}
        tables[name] = [{**row, "end_ts": 9} if "end_ts" in row else {**row, "duration": 9}]
    with open_profile(write_profile(tmp_path / "p.nprof", tables, derive=False)) as profile:
        shown = {track.table for track in profile.tracks()}
    assert shown == set(tables)


def test_overlapping_transfers_of_a_queue_stand_side_by_side(tmp_path):
    directory = tmp_path / "p.nprof"
    start = np.arange(0, 1000, 10)
    write_spans(directory, start, np.full(100, 25))
    with open_profile(directory) as profile:
        (track,) = profile.tracks()
        busy = profile.timeline(track, pixels=10).column("busy_share").to_pylist()
    assert track.depths == 3
    assert max(busy) <= 1


def test_columns_that_a_foreign_table_lacks_are_not_needed(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = columns([instruction("Tensor", 0, 5, id=1)])
    chosen = {name: rows[name] for name in ("start_ts", "end_ts", "engine", "opcode")}
    (tmp_path / "aws").mkdir()
    pq.write_table(pa.table(chosen), tmp_path / "aws" / "Instruction.parquet")
    with open_profile(tmp_path / "aws") as profile:
        assert [track.id for track in profile.tracks()] == ["p0/core0/engine/Tensor"]


def test_small_parts_of_large_arrays_are_copied():
    from neuron_tools.profile.timeline.segment import Segment

    columns = (np.arange(1000), np.ones(1000, np.int64), np.zeros(1000, np.int32), np.arange(1000))
    whole = Segment(*columns)
    part = whole.take(slice(10, 20)).apart()
    assert part.start_ns.tolist() == list(range(10, 20))
    assert all(values.base is None for values in (part.start_ns, part.duration_ns, part.name, part.row))
    assert whole.take(slice(0, 900)).apart().start_ns.base is columns[0]
