"""Folders of Parquet tables, AWS's and our own, alone and merged."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neuron_tools.profile.export import export_parquet
from neuron_tools.profile.importers import TraceError, import_traces
from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.verify import verify
from tests.fixtures.foreign_traces import device_profile, kineto_document
from tests.unit.profile.importers.importing import imported, rows

INSTRUCTIONS = "SELECT id, start_ts, end_ts, engine, opcode FROM Instruction ORDER BY id"


@pytest.fixture
def folder(tmp_path):
    """A folder as Neuron Explorer writes it."""
    with imported(tmp_path, device_profile()) as profile:
        export_parquet(profile, tmp_path / "explorer")
    return tmp_path / "explorer"


def test_a_folder_of_tables_becomes_a_profile_with_the_same_rows(folder, tmp_path):
    report = import_traces([folder], tmp_path / "again.nprof")
    with open_profile(tmp_path / "out.nprof") as before, open_profile(tmp_path / "again.nprof") as after:
        assert rows(after, INSTRUCTIONS) == rows(before, INSTRUCTIONS)
        assert after.summary() == before.summary()
        assert verify(after) == []
    assert report.formats == {str(folder): "Neuron Explorer Parquet"}


def test_columns_of_a_later_schema_are_left_out_and_told_of(folder, tmp_path):
    table = pq.read_table(folder / "Instruction.parquet")
    table = table.append_column("brand_new", pa.array(range(table.num_rows)))
    pq.write_table(
        table.set_column(0, "start_ts", table["start_ts"].cast(pa.int32())), folder / "Instruction.parquet"
    )
    report = import_traces([folder], tmp_path / "again.nprof")

    assert any("brand_new" in warning for warning in report.warnings)
    with open_profile(tmp_path / "again.nprof") as profile:
        assert len(rows(profile, INSTRUCTIONS)) == 4


def test_a_damaged_table_is_left_out_and_told_of(folder, tmp_path):
    path = folder / "DmaPacket.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    report = import_traces([folder], tmp_path / "again.nprof")

    assert any("DmaPacket" in warning for warning in report.warnings)
    assert report.rows["Instruction"] == 4


def test_merged_profiles_keep_their_rows_apart(tmp_path):
    for name in ("one", "two"):
        with imported(tmp_path, device_profile()):
            (tmp_path / "out.nprof").rename(tmp_path / f"{name}.nprof")
    import_traces([tmp_path / "one.nprof", tmp_path / "two.nprof"], tmp_path / "both.nprof")
    with open_profile(tmp_path / "both.nprof") as profile:
        counts = rows(profile, "SELECT process_idx, count(*) AS n FROM Instruction GROUP BY 1 ORDER BY 1")
        edges = rows(
            profile,
            "SELECT a.process_idx = b.process_idx AS same, count(*) AS n FROM Flow f"
            " JOIN Instruction a ON a.id = f.in_id JOIN Instruction b ON b.id = f.out_id GROUP BY 1",
        )
        assert verify(profile) == []

    assert counts == [(0, 4), (1, 4)]
    assert edges == [(True, 6)]


def test_merged_imports_keep_their_clock(tmp_path):
    for rank, name in enumerate(("one", "two")):
        with imported(tmp_path, kineto_document(rank, skew_us=40.0 * rank)):
            (tmp_path / "out.nprof").rename(tmp_path / f"{name}.nprof")
    import_traces([tmp_path / "one.nprof", tmp_path / "two.nprof"], tmp_path / "both.nprof")
    with open_profile(tmp_path / "both.nprof") as profile:
        starts = rows(
            profile,
            "SELECT p.rank, min(s.start_ts) AS start FROM TraceSpan s JOIN ProcessInfo p USING (process_idx)"
            " GROUP BY 1 ORDER BY 1",
        )

    assert starts == [(0, 0), (1, 40_000)]


def test_a_folder_without_tables_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceError, match="without Parquet tables"):
        import_traces([tmp_path / "empty"], tmp_path / "out.nprof")
