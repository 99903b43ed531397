import pyarrow.parquet as pq
import pytest

from neuron_tools.errors import UsageError
from neuron_tools.profile.export import export_parquet
from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.schema import TABLES
from tests.fixtures.synthetic_profile import MemoryProfile, instructions, synthetic_profile, table


@pytest.fixture(scope="module")
def profile():
    return synthetic_profile(40)


def test_files_hold_the_published_columns_in_their_order(profile, tmp_path):
    report = export_parquet(profile, tmp_path / "out")

    for path in report.paths:
        schema = TABLES[path.stem]
        assert not schema.is_extension
        published = [field.name for field in schema.fields if not field.is_extension]
        assert pq.read_schema(path).names == published


def test_values_and_row_counts_are_the_tables_own(profile, tmp_path):
    report = export_parquet(profile, tmp_path / "out")

    rows = pq.read_table(tmp_path / "out" / "Instruction.parquet")
    assert rows.sort_by("id").equals(profile.tables["Instruction"].select(rows.column_names).sort_by("id"))
    assert report.counts["Instruction"] == rows.num_rows


def test_tables_without_rows_are_left_out(tmp_path):
    tables = {"Instruction": instructions([0], [1]), "CcOp": table("CcOp", start_ts=[])}
    report = export_parquet(MemoryProfile(tables), tmp_path / "out")

    assert [path.name for path in report.paths] == ["Instruction.parquet"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["Instruction.parquet"]


def test_extensions_are_added_when_asked_for(profile, tmp_path):
    report = export_parquet(profile, tmp_path / "out", extensions=True)

    assert "HostSpan" in report.counts
    assert "source_line" in pq.read_schema(tmp_path / "out" / "Instruction.parquet").names


def test_the_folder_opens_as_a_profile(profile, tmp_path):
    export_parquet(profile, tmp_path / "out")

    with open_profile(tmp_path / "out") as opened:
        assert opened.tables()["Instruction"] == profile.tables["Instruction"].num_rows


def test_an_existing_folder_is_kept(profile, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("1")
    with pytest.raises(UsageError, match="exists"):
        export_parquet(profile, tmp_path / "out")

    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]
