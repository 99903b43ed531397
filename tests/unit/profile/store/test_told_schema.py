"""Profiles whose tables follow another version of the published schema."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neuron_tools.profile.export import export_parquet
from neuron_tools.profile.importers import import_traces
from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.schema import SCHEMA_VERSION
from neuron_tools.profile.store import told_schema
from tests.fixtures.foreign_traces import device_profile
from tests.unit.profile.importers.importing import imported, rows

LATER = "12.0.1"


@pytest.fixture
def folder(tmp_path):
    """A folder as AWS's tool writes it, of version 7.4.0."""
    with imported(tmp_path, device_profile()) as profile:
        export_parquet(profile, tmp_path / "explorer")
    return tmp_path / "explorer"


def change(folder, table, function):
    """Rewrite a table of the folder."""
    path = folder / f"{table}.parquet"
    pq.write_table(function(pq.read_table(path)), path)


def replaced(table, column, value):
    place = table.schema.get_field_index(column)
    return table.set_column(place, column, pa.array([value] * table.num_rows))


def of_version(folder, version):
    change(folder, "Metadata", lambda table: replaced(table, "profile_schema_version", version))


def test_our_version_differs_in_nothing(folder):
    with open_profile(folder) as profile:
        assert profile.missing == ()
    assert told_schema.versions()[SCHEMA_VERSION]["is_known"]


def test_a_later_version_is_read_as_far_as_it_is_alike_and_told_of_once(folder):
    of_version(folder, LATER)
    change(folder, "Instruction", lambda t: t.append_column("brand_new", pa.array([1] * t.num_rows)))
    change(folder, "Instruction", lambda t: t.drop_columns(["opcode"]))
    pq.write_table(pa.table({"id": [1]}), folder / "TensorCoreStall.parquet")
    with open_profile(folder) as profile:
        told = profile.missing
        assert len(rows(profile, "SELECT start_ts, brand_new FROM Instruction")) == 4
    assert told == (
        f"The profile follows version {LATER} of the schema. What it shares with {SCHEMA_VERSION} is read.",
        "Tables that are not known were left out: TensorCoreStall.",
        "Columns that are not known are in SQL alone: Instruction.brand_new.",
        "Columns that every row should have are not there: Instruction.opcode.",
    )


def test_a_column_in_another_unit_is_unknown_and_never_a_wrong_number(folder, tmp_path):
    of_version(folder, LATER)
    described = {"table_name": ["Instruction"] * 2, "field_name": ["duration_ns", "start_ts"]}
    pq.write_table(
        pa.table({**described, "field_unit": ["microseconds", "ns"]}), folder / "SchemaFields.parquet"
    )
    with open_profile(folder) as profile:
        assert rows(profile, "SELECT DISTINCT duration_ns FROM Instruction") == [(None,)]
        told = [
            sentence for sentence in profile.missing if "Instruction.duration_ns (microseconds)" in sentence
        ]
        assert len(told) == 1
    report = import_traces([folder], tmp_path / "again.nprof")
    assert sum("Instruction.duration_ns" in warning for warning in report.warnings) == 1


def test_a_renamed_column_is_one_entry_of_the_table_of_versions(folder, tmp_path, monkeypatch):
    of_version(folder, LATER)
    renamed = {"Instruction": {"operation": "opcode"}}
    known = {**told_schema.versions(), LATER: {"is_known": True, "renamed": renamed}}
    monkeypatch.setattr(told_schema, "versions", lambda: known)
    before = pq.read_table(folder / "Instruction.parquet")["opcode"].to_pylist()
    change(folder, "Instruction", lambda table: table.rename_columns({"opcode": "operation"}))
    import_traces([folder], tmp_path / "again.nprof")
    with open_profile(tmp_path / "again.nprof") as profile:
        assert sorted(value for (value,) in rows(profile, "SELECT opcode FROM Instruction")) == sorted(before)


def test_a_profile_without_metadata_says_nothing_of_versions(folder):
    (folder / "Metadata.parquet").unlink()
    with open_profile(folder) as profile:
        assert profile.missing == ()
