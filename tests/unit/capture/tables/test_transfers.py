import dataclasses

import pytest

from tests.unit.capture.programs import fused_executable
from tests.unit.capture.replayed import CALLER, tables


@pytest.fixture(scope="module")
def rows():
    return tables(fused_executable(), start_ns=10_000, first_id=1_000)["DmaPacketAggregated"]


def test_times_and_throughput(rows):
    assert rows["start_ts"] == [11_000, 13_500]
    assert rows["end_ts"] == [12_000, 15_000]
    assert rows["duration_ns"] == [1_000, 1_500]
    assert rows["throughput"] == pytest.approx([64e9 / 1_000, 32e9 / 1_500])


def test_bytes_and_packets(rows):
    assert rows["read_bytes"] == rows["write_bytes"] == rows["transfer_bytes"] == [64, 32]
    assert rows["packet_count"] == [4, 4]
    assert rows["read_shape"] == rows["write_shape"] == ["[4,16]", "[4,8]"]
    assert rows["read_steps"] == rows["write_steps"] == ["[16,1]", "[8,1]"]


def test_from_where_to_where(rows):
    assert (rows["source"], rows["dest"]) == (["HBM", "SBUF"], ["SBUF", "HBM"])
    assert rows["read_num_sbuf_partitions"] == [0, 4]
    assert rows["write_num_sbuf_partitions"] == [4, 0]
    assert rows["write_sbuf_partitions"] == ["32-35", ""]
    assert rows["read_sbuf_partitions"] == ["", "0-3"]
    assert rows["variable"] == ["fc.weight", "out"]


def test_queue_purpose_and_semaphore(rows):
    assert rows["queue_name"] == ["qSyncWeight0", "qSyncOutput0"]
    assert rows["queue_type"] == ["hardware_dynamic", "software_dynamic"]
    assert rows["op"] == ["weight", "output"]
    assert rows["semaphore_id"] == ["S[2]", "-1"]


def test_references(rows):
    assert rows["id"] == [1_008, 1_009]
    assert rows["trigger"] == [1_004, 1_007]
    assert rows["raw_hlo_id"] == [1_002, 1_003]
    assert rows["raw_framework_id"] == [1_000, 1_001]


def test_an_eager_operations_transfers_have_the_place_of_the_call():
    rows = tables(fused_executable(kind="eager"), origin=CALLER)["DmaPacketAggregated"]
    assert (rows["layer"], rows["source_file"], rows["source_line"]) == (
        ["/caller"] * 2,
        ["call.py"] * 2,
        [5, 5],
    )


def test_a_transfer_shorter_than_a_nanosecond_has_a_finite_throughput():
    executable = fused_executable()
    instant = dataclasses.replace(executable.simulation, dma_end_ps=executable.simulation.dma_start_ps + 1)
    rows = tables(dataclasses.replace(executable, simulation=instant))["DmaPacketAggregated"]
    assert rows["duration_ns"] == [0, 0]
    assert rows["throughput"] == pytest.approx([64e9, 32e9])
