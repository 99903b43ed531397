import pyarrow.parquet as pq
import pytest

from neuron_tools import open_profile
from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.store import layout, parts
from neuron_tools.profile.store.compaction import compact, join_parts
from neuron_tools.profile.store.layout import part_files
from neuron_tools.profile.writer import ProfileWriter
from tests.unit.profile.builders import columns, instruction

TABLE = TABLES["Instruction"]


@pytest.fixture
def many_parts(tmp_path, monkeypatch):
    """Ten parts of one window of eight rows, as a slow capture leaves them."""
    monkeypatch.setattr(parts, "MIN_WINDOW_ROWS", 8)
    monkeypatch.setattr(parts, "MAX_WINDOW_ROWS", 8)
    writer = ProfileWriter(tmp_path / "p.nprof", {})
    for first in range(0, 80, 8):
        rows = (instruction("Tensor", n, n + 1, id=n) for n in range(first, first + 8))
        more = {"layer": ["/a"] * 8} if first > 30 else {}
        writer.append("Instruction", {**columns(rows), **more})
        writer.flush()
    return tmp_path / "p.nprof", writer


def ids(directory):
    tables = [pq.read_table(path, columns=["id"]) for path in part_files(directory, "Instruction")]
    return [number for table in tables for number in table.column("id").to_pylist()]


def test_small_parts_become_one_with_the_same_rows(many_parts):
    directory, writer = many_parts
    assert len(part_files(directory, "Instruction")) == 10
    writer.close(complete=True)
    (joined,) = part_files(directory, "Instruction")
    assert joined.name == "part-0000-000000-000009.parquet"
    assert pq.read_metadata(joined).num_row_groups == 10
    assert ids(directory) == list(range(80))
    with open_profile(directory) as profile:
        found = profile.query("SELECT count(*), count(layer) FROM Instruction").to_pylist()[0]
    assert list(found.values()) == [80, 48]


def test_killed_between_joining_and_removing_every_row_is_seen_once(many_parts):
    directory, _ = many_parts
    before = {path: path.read_bytes() for path in part_files(directory, "Instruction")}
    compact(directory, TABLE)
    for path, content in before.items():
        path.write_bytes(content)
    assert ids(directory) == list(range(80))


def test_a_writer_that_comes_back_goes_on_after_the_joined_part(many_parts):
    directory, writer = many_parts
    writer.close(complete=True)
    with ProfileWriter.join(directory, process_idx=0) as again:
        again.append("Instruction", columns([instruction("Tensor", 99, 100, id=99)]))
    assert ids(directory) == [*range(80), 99]


def test_parts_of_two_processes_stay_apart(many_parts):
    directory, writer = many_parts
    other = ProfileWriter.join(directory, process_idx=1)
    for number in (200, 201):
        other.append("Instruction", columns([instruction("Tensor", 0, 1, id=number)]))
        other.flush()
    writer.close(complete=True)
    ranges = [layout.part_range(path) for path in part_files(directory, "Instruction")]
    assert [place[0] for place in ranges] == [0, 1]


def test_files_that_others_named_are_left_alone(many_parts):
    directory, _ = many_parts
    folder = directory / "Instruction"
    path = part_files(directory, "Instruction")[0].rename(folder / "0.parquet")
    join_parts([path, *part_files(directory, "Instruction")[1:]], TABLE)
    assert path.exists()
    assert sorted(ids(directory)) == list(range(80))
