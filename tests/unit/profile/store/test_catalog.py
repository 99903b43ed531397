"""Folders of Parquet tables that other tools wrote: what fits is read, the rest is told."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neuron_tools import open_profile
from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.export import export_slice
from neuron_tools.profile.importers import import_traces
from neuron_tools.profile.reader import NotAProfileError


def folder_of(path, **columns):
    given = {"id": [1, 2], "start_ts": [0, 10], "end_ts": [5, 20], "engine": ["Tensor"] * 2, **columns}
    path.mkdir()
    table = pa.table({name: values for name, values in given.items() if values is not None})
    pq.write_table(table, path / "Instruction.parquet")
    return path


@pytest.mark.parametrize(
    "start_ts",
    [["x", "y"], pa.array([0, 10], pa.timestamp("ns")), [[0], [10]]],
    ids=["texts", "dates", "lists"],
)
def test_times_of_another_form_are_told(tmp_path, start_ts):
    path = folder_of(tmp_path / "foreign", start_ts=start_ts)
    with pytest.raises(NotAProfileError, match=r"start_ts of Instruction.parquet has an unknown form"):
        open_profile(path)
    pq.write_table(pa.table({"message": ["hot"], "category": ["thermal"]}), path / "Warning.parquet")
    with open_profile(path) as profile:
        assert list(profile.tables()) == ["Warning"]
        assert "start_ts" in profile.missing[0]


@pytest.mark.parametrize("start_ts", [[0.0, 10.0], pa.array([0, 10], pa.uint8())], ids=["floats", "bytes"])
def test_numbers_of_any_type_are_times(tmp_path, start_ts):
    with open_profile(folder_of(tmp_path / "foreign", start_ts=start_ts)) as profile:
        assert profile.time_range_ns() == (0, 20)
        assert profile.query("SELECT sum(start_ts) AS total FROM Instruction").to_pylist() == [{"total": 10}]


def test_a_slice_of_tables_that_lack_columns_is_a_profile(tmp_path):
    with open_profile(folder_of(tmp_path / "foreign", engine=None)) as profile:
        export_slice(profile, tmp_path / "slice.nprof", 0, 15)
    with open_profile(tmp_path / "slice.nprof") as profile:
        found = profile.query("SELECT engine, end_ts FROM Instruction ORDER BY start_ts").to_pylist()
    assert found == [{"engine": "", "end_ts": 5}, {"engine": "", "end_ts": 15}]


def test_numbers_beyond_64_bits_are_one_sentence(tmp_path):
    beyond = pa.array([0, 2**64 - 1], pa.uint64())
    with open_profile(folder_of(tmp_path / "foreign", end_ts=beyond)) as profile:
        assert profile.timelines(pixels=10).num_rows
        with pytest.raises(NeuronToolsError, match="out of range"):
            export_slice(profile, tmp_path / "slice.nprof", 0, 15)


def test_times_of_no_run_are_cut_when_imported(tmp_path):
    path = folder_of(tmp_path / "foreign", start_ts=[100, -(2**62)], end_ts=[50, 2**62])
    report = import_traces([path], tmp_path / "p.nprof")
    assert any("no times of any run" in sentence for sentence in report.warnings)
    assert report.rows["Instruction"] == 2


def test_a_part_whose_column_names_are_no_text_is_told(tmp_path):
    path = folder_of(tmp_path / "foreign")
    part = path / "Instruction.parquet"
    table = pq.read_table(part).replace_schema_metadata(None)
    pq.write_table(table, part, store_schema=False)
    part.write_bytes(part.read_bytes().replace(b"end_ts", b"end\xa9ts"))
    with pytest.raises(NotAProfileError, match=r"Instruction.parquet is damaged or cut off"):
        open_profile(path)
