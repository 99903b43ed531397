import errno
import json
import os
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neuron_tools.errors import UsageError
from neuron_tools.profile import writer
from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.schema import TABLES
from neuron_tools.profile.store import parts
from neuron_tools.profile.store.layout import part_files
from neuron_tools.profile.writer import ColumnError, ProfileWriteError, ProfileWriter
from tests.unit.profile.builders import columns, instruction, write_profile


@pytest.fixture
def small_windows(monkeypatch):
    """Windows of 8 rows and parts of 2 windows, so that a few rows fill several."""
    monkeypatch.setattr(parts, "MIN_WINDOW_ROWS", 8)
    monkeypatch.setattr(parts, "MAX_WINDOW_ROWS", 8)
    monkeypatch.setattr(parts, "WINDOWS_PER_PART", 2)


@pytest.fixture
def never_by_itself(monkeypatch):
    monkeypatch.setattr(writer, "FLUSH_INTERVAL_S", float("inf"))


def spans(first, count, engine="Tensor"):
    return columns(instruction(engine, 10 * n, 10 * n + 5, id=n) for n in range(first, first + count))


def stored_ids(directory):
    tables = [pq.read_table(path, columns=["id"]) for path in part_files(directory, "Instruction")]
    return [number for table in tables for number in table.column("id").to_pylist()]


def test_flushing_that_takes_long_is_done_less_often(tmp_path, monkeypatch):
    now_s, flushes = 0.0, []

    def flush(parts):
        nonlocal now_s
        now_s += 2.0
        flushes.append(now_s)

    monkeypatch.setattr(writer, "time", SimpleNamespace(monotonic=lambda: now_s))  # not all threads'
    monkeypatch.setattr(parts.TableParts, "flush", flush)
    target = ProfileWriter(tmp_path / "p.nprof", {})
    for second in range(12):
        now_s += 1.0
        target.append("Instruction", spans(second, 1))
    assert flushes == [3.0, 13.0]


def test_absent_columns_are_null(tmp_path):
    with ProfileWriter(tmp_path / "p.nprof", {}) as target:
        target.append("Instruction", spans(0, 2))
    with open_profile(tmp_path / "p.nprof") as profile:
        table = profile.arrow("Instruction")
    assert table.column_names == list(TABLES["Instruction"].column_names)
    assert table.column("layer").null_count == 2


def test_blocks_with_different_optional_columns_are_joined(tmp_path):
    with ProfileWriter(tmp_path / "p.nprof", {}) as target:
        target.append("Instruction", spans(0, 1))
        target.append("Instruction", {**spans(1, 1), "layer": ["/a"]})
    with open_profile(tmp_path / "p.nprof") as profile:
        assert profile.query("SELECT layer FROM Instruction ORDER BY id").column(0).to_pylist() == [
            None,
            "/a",
        ]


def test_every_flushed_row_is_stored_once_whatever_the_flushes(tmp_path, small_windows, never_by_itself):
    directory = tmp_path / "p.nprof"
    target = ProfileWriter(directory, {})
    for first, count in [(0, 3), (3, 3), (6, 5), (11, 20), (31, 1)]:
        target.append("Instruction", spans(first, count))
        target.flush()
        assert sorted(stored_ids(directory)) == list(range(first + count))


def test_row_order_does_not_depend_on_flushes(tmp_path, small_windows, never_by_itself):
    orders = []
    for name, flushes in (("often", True), ("never", False)):
        target = ProfileWriter(tmp_path / name, {})
        for first in range(0, 40, 5):
            target.append("Instruction", spans(first, 5, engine="Vector" if first % 2 else "Tensor"))
            if flushes:
                target.flush()
        target.close(complete=True)
        orders.append(stored_ids(tmp_path / name))
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == list(range(40))


def test_row_groups_are_sorted_by_track_then_time(tmp_path, small_windows):
    rows = [
        instruction(engine, start, start + 1, id=start)
        for start, engine in enumerate(["Vector", "Tensor"] * 4)
    ]
    write_profile(tmp_path / "p.nprof", {"Instruction": rows[::-1]}, derive=False)
    table = pq.read_table(part_files(tmp_path / "p.nprof", "Instruction")[0])
    assert table.column("engine").to_pylist() == ["Tensor"] * 4 + ["Vector"] * 4
    assert table.column("start_ts").to_pylist() == [1, 3, 5, 7, 0, 2, 4, 6]


def test_windows_become_row_groups_and_parts(tmp_path, small_windows, never_by_itself):
    with ProfileWriter(tmp_path / "p.nprof", {}) as target:
        target.append("Instruction", spans(0, 41))
    groups = [
        pq.read_metadata(path).num_row_groups for path in part_files(tmp_path / "p.nprof", "Instruction")
    ]
    assert groups == [2, 2, 1, 1]


def test_rows_are_readable_at_most_a_second_after_the_append_that_follows(tmp_path, monkeypatch):
    clock = iter([0.0, 0.5, 1.2, 1.2, 1.2])
    monkeypatch.setattr(writer, "time", SimpleNamespace(monotonic=lambda: next(clock)))  # not all threads'
    target = ProfileWriter(tmp_path / "p.nprof", {})
    target.append("Instruction", spans(0, 1))
    assert stored_ids(tmp_path / "p.nprof") == []
    target.append("Instruction", spans(1, 1))
    assert stored_ids(tmp_path / "p.nprof") == [0, 1]


def test_the_manifest_tells_how_it_ended(tmp_path):
    directory = tmp_path / "p.nprof"
    target = ProfileWriter(directory, {"command": ["python", "x.py"], "target": "trn1"})
    begun = json.loads((directory / "profile.json").read_text())
    assert (begun["complete"], begun["target"], begun["schema_version"]) == (False, "trn1", "7.4.0")
    target.append("Instruction", spans(0, 3))
    target.close(complete=True, exit_status=3)
    ended = json.loads((directory / "profile.json").read_text())
    assert (ended["complete"], ended["exit_status"]) == (True, 3)
    assert ended["tables"]["Instruction"]["rows"] == 3


def test_an_exception_leaves_an_incomplete_profile(tmp_path):
    def fail_after_some_rows():
        with ProfileWriter(tmp_path / "p.nprof", {}) as target:
            target.append("Instruction", spans(0, 3))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_after_some_rows()
    with open_profile(tmp_path / "p.nprof") as profile:
        assert not profile.complete
        assert profile.tables() == {"Instruction": 3}


def test_a_killed_writer_leaves_what_was_flushed(tmp_path):
    directory = tmp_path / "p.nprof"
    script = textwrap.dedent(f"""
        import os, signal
        from pathlib import Path
        from neuron_tools.profile.writer import ProfileWriter
        writer = ProfileWriter(Path({str(directory)!r}), {{"target": "trn2"}})
        writer.append("Warning", {{"message": ["flushed"], "category": ["test"]}})
        writer.flush()
        writer.append("Warning", {{"message": ["lost"], "category": ["test"]}})
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    with open_profile(directory) as profile:
        assert not profile.complete
        assert profile.query("SELECT message FROM Warning").column(0).to_pylist() == ["flushed"]


def test_an_existing_directory_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(UsageError, match="choose another folder with -o"):
        ProfileWriter(tmp_path, {})
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_overwriting_replaces_the_tables_of_a_profile_only(tmp_path):
    directory = write_profile(tmp_path / "p.nprof", {"Instruction": [instruction("Tensor", 0, 1)]})
    left_by_killed = directory / ".spill-killed"
    left_by_killed.mkdir()
    with ProfileWriter(directory, {"target": "trn3"}, overwrite=True) as target:
        target.append("Warning", {"message": ["a"], "category": ["b"]})
    assert not left_by_killed.exists()
    with open_profile(directory) as profile:
        assert profile.tables() == {"Warning": 1}
    other = tmp_path / "documents"
    other.mkdir()
    (other / "thesis.txt").touch()
    with pytest.raises(Exception, match="is no profile"):
        ProfileWriter(other, {}, overwrite=True)


def test_two_processes_write_into_one_profile(tmp_path):
    directory = tmp_path / "p.nprof"
    maker = ProfileWriter(directory, {})
    other = ProfileWriter.join(directory, process_idx=1)
    maker.append("Instruction", spans(0, 2))
    other.append("Instruction", {**spans(100, 2), "process_idx": [1, 1]})
    other.flush()
    maker.close(complete=True)
    with open_profile(directory) as profile:
        rows = profile.query("SELECT process_idx, id FROM Instruction ORDER BY ALL").to_pylist()
    assert [tuple(row.values()) for row in rows] == [(0, 0), (0, 1), (1, 100), (1, 101)]


def test_a_writer_that_joins_again_adds_to_its_parts(tmp_path):
    directory = tmp_path / "p.nprof"
    ProfileWriter(directory, {}).close(complete=False)
    for first in (0, 5):
        with ProfileWriter.join(directory, process_idx=0) as target:
            target.append("Instruction", spans(first, 5))
    assert sorted(stored_ids(directory)) == list(range(10))


def test_replacing_takes_away_all_earlier_rows(tmp_path):
    target = ProfileWriter(tmp_path / "p.nprof", {})
    target.append("Instruction", spans(0, 5))
    target.flush()
    target.replace("Instruction", spans(7, 1))
    target.close(complete=True)
    assert stored_ids(tmp_path / "p.nprof") == [7]


def test_blocks_that_replace_a_table_are_one_part_however_long_they_take(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "FLUSH_INTERVAL_S", 0.0)
    monkeypatch.setattr(writer, "MOST_OF_TIME", 1.0)
    target = ProfileWriter(tmp_path / "p.nprof", {})
    target.append("Instruction", spans(0, 5))
    target.replace_in_blocks("Instruction", (spans(first, 2) for first in (10, 20, 30)))
    assert len(list((tmp_path / "p.nprof" / "Instruction").iterdir())) == 1
    target.replace_in_blocks("Warning", [])
    target.close(complete=True)
    assert stored_ids(tmp_path / "p.nprof") == [10, 11, 20, 21, 30, 31]


def test_rows_that_do_not_fit_replace_nothing(tmp_path):
    target = ProfileWriter(tmp_path / "p.nprof", {})
    target.append("Instruction", spans(0, 2))
    target.flush()
    with pytest.raises(ColumnError):
        target.replace("Instruction", {"no_such_column": [1]})
    target.close(complete=True)
    assert stored_ids(tmp_path / "p.nprof") == [0, 1]


def test_a_full_disk_is_one_sentence_and_what_was_written_stays(tmp_path, monkeypatch):
    directory = tmp_path / "p.nprof"
    target = ProfileWriter(directory, {})
    target.append("Instruction", spans(0, 3))
    target.flush()

    def full(*_arguments, **_options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    target.append("Instruction", spans(3, 3))
    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(ProfileWriteError, match="No space left on device") as raised:
        target.flush()
    assert "\n" not in str(raised.value)
    assert stored_ids(directory) == [0, 1, 2]
    assert not list(directory.glob("*/*.writing"))


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ProfileWriteError, match="cannot be written"):
        ProfileWriter(tmp_path / "file" / "p.nprof", {})


def test_memory_stays_bounded_by_the_window(tmp_path, never_by_itself):
    """A long capture holds no more than one window of a table and what Arrow needs to write it."""
    rows = parts.window_rows(TABLES["Flow"])
    flow = {
        "in_id": np.arange(rows),
        "out_id": np.arange(rows),
        "in_table": pa.array(["Instruction"] * rows),
        "out_table": pa.array(["Instruction"] * rows),
    }
    target = ProfileWriter(tmp_path / "p.nprof", {})
    target.append("Flow", flow)
    after_one = pa.total_allocated_bytes()
    for _ in range(4):
        target.append("Flow", flow)
    assert pa.total_allocated_bytes() < after_one + parts.WINDOW_BYTES
    target.close(complete=True)
