import json

import pytest

from neuron_tools.profile.export import export_neuron_json, export_system_json
from tests.fixtures.synthetic_profile import MemoryProfile, instructions, synthetic_profile, table


def exported(tables, tmp_path, export=export_neuron_json):
    path = tmp_path / "ntff.json"
    report = export(MemoryProfile(tables), path, force=True)
    return json.loads(path.read_text()), report


TRANSFER = {
    "start_ts": [5],
    "end_ts": [25],
    "duration_ns": [20],
    "id": [9],
    "queue_idx": [3],
    "queue_name": ["qSyncInput0"],
    "read_bytes": [64],
    "write_bytes": [64],
    "transfer_bytes": [64],
    "throughput": [3.2e9],
}


def test_an_instruction_has_the_keys_of_the_published_tool(tmp_path):
    rows = instructions(
        [100],
        [170],
        timeline_track=["TensorMatrix"],
        evt_wait_time_ns=[12],
        tensor_instruction_type=["TRANSPOSE"],
        layer=["/model/mlp"],
        pcore_idx=[1],
        tensor_elements=[512],
    )
    content, _ = exported({"Instruction": rows}, tmp_path)

    (row,) = content["instruction"]
    assert row["timestamp"] == 100
    assert row["duration"] == 70
    assert (row["label"], row["subgroup"], row["subgraph"]) == ("TensorMatrix", "Tensor", "sg01")
    assert (row["opcode"], row["instruction_type"], row["layer"]) == ("MATMUL", "TRANSPOSE", "/model/mlp")
    assert (row["evt_wait_time"], row["elements"]) == (12, 512)
    assert row["hlo_name"] == "", "texts are empty rather than missing, as there"


def test_dependencies_are_listed_with_the_instruction_that_waits(tmp_path):
    edges = table(
        "Flow", in_id=[1, 2, 1], out_id=[3, 3, 2], in_table=["Instruction"] * 3, out_table=["Instruction"] * 3
    )
    content, _ = exported({"Instruction": instructions([0, 5, 9], [4, 8, 12]), "Flow": edges}, tmp_path)

    waits = {
        row["id"]: [edge["id"] for edge in row.get("predecessors", [])] for row in content["instruction"]
    }
    assert waits == {1: [], 2: [1], 3: [1, 2]}
    assert content["instruction"][1]["predecessors"] == [{"id": 1, "type": "FLOW_DEPENDENCE"}]


def test_transfers_stand_in_for_packets_that_are_not_there(tmp_path):
    transfers = table("DmaPacketAggregated", **TRANSFER, source=["HBM"], dest=["SBUF"])
    content, _ = exported({"DmaPacketAggregated": transfers}, tmp_path)

    (row,) = content["dma"]
    assert (row["aggregated"], row["transfer_size"], row["subgroup"]) == ("yes", 64, "qSyncInput0")
    assert (row["source"], row["dest"], row["semaphore_id"]) == ([["HBM"]], ["SBUF"], "-1")


def test_packets_are_preferred_to_transfers(tmp_path):
    packets = table("DmaPacket", **TRANSFER, packet_idx=[0], packet_aggregation_id=[9], engine_idx=[64])
    tables = {"DmaPacketAggregated": table("DmaPacketAggregated", **TRANSFER), "DmaPacket": packets}
    content, _ = exported(tables, tmp_path)

    (row,) = content["dma"]
    assert (row["aggregated"], row["dma_engine"], row["packet_aggregation_id"]) == ("no", "64", 9)


def test_memory_use_and_throughput_of_both_kinds_share_a_list(tmp_path):
    sample = {"timestamp": [10], "current_throughput": [1e9], "total_transfer_bytes": [100]}
    content, report = exported(
        {
            "SbufUsage": table("SbufUsage", timestamp=[10], avg_util_percent=[0.25]),
            "PsumUsage": table(
                "PsumUsage", timestamp=[11], avg_util_percent=[0.5], bank_3_util_percent=[1.0]
            ),
            "DmaUsage": table("DmaUsage", **sample),
            "HbmUsage": table("HbmUsage", **sample),
        },
        tmp_path,
    )

    kinds = [(row["type"], row["usage_avg"]) for row in content["instruction_usage"]]
    assert kinds == [("sb", 0.25), ("psum", 0.5)]
    assert content["instruction_usage"][1]["bank_3_usage"] == 1.0
    assert [row["uses_hbm"] for row in content["dma_throughput"]] == ["false", "true"]
    assert report.counts == {"instruction_usage": 2, "dma_throughput": 2}


def test_metadata_is_spelled_as_there(tmp_path):
    metadata = table("Metadata", tensor_engine_clock_freq=[2.4], tensor_engine_num_rows=[128])
    content, _ = exported({"Metadata": metadata}, tmp_path)

    assert content["metadata"] == [{"pe_clock_freq": 2.4, "pe_num_rows": 128}]


def test_rows_come_in_order_of_time(tmp_path):
    content, _ = exported({"Instruction": instructions([9, 2, 5], [10, 3, 6])}, tmp_path)

    assert [row["timestamp"] for row in content["instruction"]] == [2, 5, 9]


def test_the_system_file_has_the_system_rows_only(tmp_path):
    profile = synthetic_profile(16)
    content, report = exported(profile.tables, tmp_path, export_system_json)

    assert set(content) == {"trace_events"}
    events = profile.tables["SystemProfileEvents"].num_rows + profile.tables["HostSpan"].num_rows
    assert len(content["trace_events"]) == report.counts["trace_events"] == events
    assert content["trace_events"][0]["group"].startswith("nrt-nc-00")
    assert content["trace_events"][-1]["type"] == 99999


@pytest.mark.parametrize(
    ("key", "table_name"),
    [("instruction", "Instruction"), ("dma", "DmaPacketAggregated"), ("cc_ops", "CcOp")],
)
def test_every_row_of_a_whole_profile_is_there(key, table_name, tmp_path):
    profile = synthetic_profile(24)
    content, report = exported(profile.tables, tmp_path)

    assert len(content[key]) == report.counts[key] == profile.tables[table_name].num_rows
    assert content["warnings"] == profile.tables["Warning"].select(["message", "category"]).to_pylist()
