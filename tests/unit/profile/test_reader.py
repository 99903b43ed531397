import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neuron_tools
from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.schema import TABLES, UnknownTableError
from neuron_tools.profile.store.layout import NotAProfileError, part_files
from neuron_tools.profile.store.sandbox import QueryError
from tests.unit.profile.builders import instruction, sound_tables, write_profile


@pytest.fixture
def directory(tmp_path):
    return write_profile(tmp_path / "p.nprof", sound_tables())


def test_every_table_of_the_schema_can_be_queried(directory):
    with open_profile(directory) as profile:
        for name, table in TABLES.items():
            assert profile.query(f'SELECT * FROM "{name}" LIMIT 1').column_names == list(table.column_names)


def test_tables_lists_what_has_rows(directory):
    with open_profile(directory) as profile:
        assert profile.tables()["Instruction"] == 3
        assert "CcOp" not in profile.tables()


def test_the_profile_is_opened_by_its_manifest_too(directory):
    with open_profile(directory / "profile.json") as profile:
        assert profile.path == directory
        assert profile.metadata["target"] == "trn2"
        assert profile.complete


def test_sql_is_lazy_and_gives_what_pandas_and_arrow_read(directory):
    with open_profile(directory) as profile:
        relation = profile.sql("SELECT engine, duration_ns FROM Instruction ORDER BY id")
        assert relation.fetchall() == [("Sync", 5), ("Tensor", 40), ("Scalar", 25)]
        assert profile.table("Flow").count("*").fetchall() == [(2,)]


def test_parameters_fill_question_marks(directory):
    with open_profile(directory) as profile:
        rows = profile.query("SELECT id FROM Instruction WHERE engine = ?", ["Tensor"]).to_pylist()
    assert rows == [{"id": 2}]


def test_arrow_takes_chosen_columns(directory):
    with open_profile(directory) as profile:
        assert profile.arrow("Instruction", ["id", "engine"]).column_names == ["id", "engine"]
        with pytest.raises(QueryError):
            profile.arrow("Instruction", ["colour"])
        with pytest.raises(UnknownTableError):
            profile.arrow("Instructions")


def test_the_summary_holds_the_known_metrics(directory):
    with open_profile(directory) as profile:
        summary = profile.summary()
    assert summary["total_time"] == pytest.approx(130e-9)
    assert None not in summary.values()


def test_a_profile_without_summary_has_none(tmp_path):
    with open_profile(write_profile(tmp_path / "p.nprof", {}, derive=False)) as profile:
        assert profile.summary() == {}


def test_two_profiles_are_apart(tmp_path):
    one = write_profile(tmp_path / "1.nprof", {"Instruction": [instruction("Tensor", 0, 1)]})
    two = write_profile(tmp_path / "2.nprof", {"Instruction": [instruction("Tensor", 0, 1)] * 2})
    with open_profile(one) as first, open_profile(two) as second:
        assert (first.tables()["Instruction"], second.tables()["Instruction"]) == (1, 2)


@pytest.mark.parametrize("keep", [0, 3, 40, -1])
def test_a_truncated_part_is_left_out_and_named(tmp_path, keep):
    directory = write_profile(tmp_path / "p.nprof", sound_tables())
    part = part_files(directory, "Flow")[0]
    part.write_bytes(part.read_bytes()[:keep])
    with open_profile(directory) as profile:
        assert profile.missing == (f"Flow: the part {part.name} is damaged or cut off and was left out.",)
        assert "Flow" not in profile.tables()
        assert profile.tables()["Instruction"] == 3


def test_a_folder_of_published_parquet_files_opens(tmp_path):
    foreign = {
        "start_ts": [0],
        "end_ts": [4],
        "duration_ns": [4],
        "engine": ["Tensor"],
        "opcode": ["MATMUL"],
        "pcore_idx": pa.array([0], pa.int32()),
        "new_in_7_9": ["x"],
    }
    pq.write_table(pa.table(foreign), tmp_path / "Instruction.parquet")
    with open_profile(tmp_path) as profile:
        row = profile.query("SELECT * FROM Instruction").to_pylist()[0]
    assert (row["engine"], row["pcore_idx"], row["new_in_7_9"], row["layer"]) == ("Tensor", 0, "x", None)
    assert profile.complete
    assert profile.metadata == {}


def test_parts_with_different_columns_are_read_together(tmp_path):
    folder = tmp_path / "Warning"
    folder.mkdir()
    pq.write_table(pa.table({"message": ["a"], "category": ["x"]}), folder / "1.parquet")
    pq.write_table(pa.table({"category": ["y"], "message": ["b"], "more": [1]}), folder / "2.parquet")
    with open_profile(tmp_path) as profile:
        rows = profile.query("SELECT message, category, more FROM Warning ORDER BY message").to_pylist()
    assert [tuple(row.values()) for row in rows] == [("a", "x", None), ("b", "y", 1)]


def test_a_table_whose_columns_mean_something_else_is_left_out_and_named(tmp_path):
    pq.write_table(pa.table({"message": ["a"], "category": ["b"]}), tmp_path / "Warning.parquet")
    pq.write_table(pa.table({"start_ts": [{"at": 1}]}), tmp_path / "Instruction.parquet")
    with open_profile(tmp_path) as profile:
        assert profile.query("SELECT count(*) AS n FROM Instruction").to_pylist() == [{"n": 0}]
        assert profile.tables() == {"Warning": 1}
        assert profile.missing == (
            "Instruction: start_ts of Instruction.parquet has an unknown form; it was left out.",
        )


def test_odd_paths_are_no_obstacle(tmp_path):
    directory = write_profile(tmp_path / "it's [a] *profile*.nprof", sound_tables())
    with open_profile(directory) as profile:
        assert profile.query("SELECT count(*) AS n FROM Instruction").to_pylist() == [{"n": 3}]


def test_what_is_no_profile_is_told_in_one_sentence(tmp_path):
    (tmp_path / "trace.json").write_text("{}")
    with pytest.raises(NotAProfileError, match=r"has no profile\.json"):
        open_profile(tmp_path)
    with pytest.raises(NotAProfileError, match="neuron-profile import"):
        open_profile(tmp_path / "trace.json")
    with pytest.raises(NotAProfileError, match="does not exist"):
        open_profile(tmp_path / "absent")


def test_a_newer_profile_asks_for_an_upgrade(directory):
    manifest = json.loads((directory / "profile.json").read_text())
    (directory / "profile.json").write_text(json.dumps({**manifest, "format_version": "9.0"}))
    with pytest.raises(NotAProfileError, match="upgrade"):
        open_profile(directory)


def test_the_package_offers_open_profile():
    assert neuron_tools.open_profile is open_profile


def test_a_profile_whose_name_is_no_text_is_refused_in_a_sentence(directory):
    odd = directory.with_name(os.fsdecode(b"p\xff.nprof"))
    directory.rename(odd)
    with pytest.raises(NotAProfileError, match=r"p\\udcff.nprof is not UTF-8: rename the profile"):
        open_profile(odd)


def test_a_part_whose_name_is_no_text_is_left_out(directory):
    (part,) = part_files(directory, "Instruction")
    part.rename(part.with_name(os.fsdecode(b"part-\xff.parquet")))
    with open_profile(directory) as profile:
        assert profile.query("SELECT count(*) AS n FROM Instruction")["n"].to_pylist() == [0]
        assert [sentence for sentence in profile.missing if "odd name" in sentence]
