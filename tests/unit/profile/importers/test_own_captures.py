"""Profiles with modules and dependencies stay the same when exported and read again, and when merged."""

from __future__ import annotations

import pytest

from neuron_tools.profile.export import export_neuron_json, export_parquet
from neuron_tools.profile.importers import import_traces
from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.verify import verify
from tests.fixtures.foreign_traces import device_profile
from tests.unit.profile.importers.importing import imported, rows

FLOWS = "SELECT in_table, in_id, out_table, out_id FROM Flow ORDER BY ALL"
NODES = "SELECT id, parent_id, depth, node_name, instruction_count FROM FrameworkNode ORDER BY id"
ORDER = (
    "SELECT process_idx, rank() OVER (PARTITION BY process_idx ORDER BY id) AS place, start_ts"
    " FROM Instruction ORDER BY 1, 2"
)
COUNTED = ("Instruction", "DmaPacketAggregated", "ActiveTime", "OpcodeSummary", "FrameworkNode")


@pytest.fixture
def capture(tmp_path):
    """A simulated device's profile: two modules, rows numbered in order, one waits for a transfer."""
    document = device_profile()
    transfer = document["dma"][0]["packet_aggregation_id"] = 500
    document["dma"] = [{**document["dma"][0], "id": 400}]
    document["metadata"][0]["is_simulation"] = True
    for number, instruction in enumerate(document["instruction"]):
        before = transfer if number == 1 else number
        instruction |= {
            "id": number + 1, "layer": f"/model/{number % 2}",
            "predecessors": [{"id": before, "type": "FLOW_DEPENDENCE"}] if number else [],
        }  # fmt: skip
    with imported(tmp_path, document):
        (tmp_path / "out.nprof").rename(tmp_path / "capture.nprof")
    return tmp_path / "capture.nprof"


def test_dependencies_lead_to_instructions_and_to_transfers(capture):
    with open_profile(capture) as profile:
        assert rows(profile, FLOWS) == [
            ("DmaPacketAggregated", 500, "Instruction", 2),
            ("Instruction", 2, "Instruction", 3),
            ("Instruction", 3, "Instruction", 4),
        ]
        assert verify(profile) == []


def test_dependencies_on_rows_that_are_not_there_are_left_out_and_told_of(tmp_path):
    document = device_profile()
    document["instruction"][1]["predecessors"] = [{"id": 77, "type": "FLOW_DEPENDENCE"}]
    with imported(tmp_path, document) as profile:
        assert len(rows(profile, FLOWS)) == 2
        assert verify(profile) == []
        told = rows(profile, "SELECT message FROM Warning WHERE category = 'Import'")
    assert any("1 dependencies on rows that are not in the file" in message for (message,) in told)


@pytest.mark.parametrize("export", [export_parquet, export_neuron_json])
def test_an_export_comes_back_whole(export, capture, tmp_path):
    with open_profile(capture) as before:
        export(before, tmp_path / "exported")
        import_traces([tmp_path / "exported"], tmp_path / "back.nprof")
        with open_profile(tmp_path / "back.nprof") as after:
            assert verify(after) == []
            assert rows(after, FLOWS) == rows(before, FLOWS)
            assert len(rows(after, NODES)) > 2
            assert rows(after, NODES) == rows(before, NODES)
            for table in COUNTED:
                assert after.tables()[table] == before.tables()[table]


def test_merged_runs_keep_the_order_of_each(capture, tmp_path):
    import_traces([capture, capture], tmp_path / "both.nprof")
    with open_profile(tmp_path / "both.nprof") as profile:
        found = rows(profile, ORDER)
        assert verify(profile) == []

    first = [row[1:] for row in found if row[0] == 0]
    assert len(first) == 4
    assert [row[1:] for row in found if row[0] == 1] == first
