import dataclasses

import pytest

from neuron_tools import hardware
from neuron_tools.capture.tables.usage import MOST_WINDOWS
from tests.unit.capture.programs import fused_executable
from tests.unit.capture.replayed import tables

SBUF_BYTES_PER_PARTITION = 224 * 1024  # trn2: 28 MiB over 128 partitions
PSUM_BANK_BYTES = 2 * 1024


@pytest.fixture(scope="module")
def made():
    return tables(fused_executable(), start_ns=10_000)


def test_sbuf_occupancy_changes_where_a_tile_comes_and_goes(made):
    rows = made["SbufUsage"]
    assert rows["timestamp"] == [10_000, 12_250, 12_300, 15_000]
    loaded, computed = 16 / SBUF_BYTES_PER_PARTITION, 8 / SBUF_BYTES_PER_PARTITION
    assert rows["partition_32_util_percent"] == pytest.approx([loaded, 0, 0, 0])
    assert rows["partition_0_util_percent"] == pytest.approx([0, 0, computed, 0])
    assert rows["avg_util_percent"] == pytest.approx(
        [sum(rows[f"partition_{p}_util_percent"][i] for p in (0, 32, 64, 96)) / 4 for i in range(4)]
    )


def test_psum_occupancy_by_bank(made):
    rows = made["PsumUsage"]
    assert rows["timestamp"] == [12_000, 12_450]
    assert rows["bank_0_util_percent"] == pytest.approx([16 * 4 / 128 / PSUM_BANK_BYTES, 0])
    assert rows["bank_7_util_percent"] == [0, 0]


def test_throughput_counts_every_byte_once(made):
    rows = made["DmaUsage"]
    assert rows["timestamp"] == [10_000, 11_000, 12_000, 13_000, 14_000, 15_000]
    assert rows["total_transfer_bytes"][-1] == 64 + 32
    assert rows["current_throughput"][1] == pytest.approx(64e9 / 1_000)
    assert rows["current_throughput"][-1] == 0  # at rest after its end
    assert rows["total_transfer_bytes"] == sorted(rows["total_transfer_bytes"])


def test_hbm_traffic_is_that_of_transfers_from_and_to_hbm(made):
    assert made["HbmUsage"]["total_transfer_bytes"] == made["DmaUsage"]["total_transfer_bytes"]


def test_a_long_execution_has_no_more_windows_than_are_useful():
    executable = fused_executable()
    long = dataclasses.replace(
        executable.simulation,
        dma_end_ps=executable.simulation.dma_end_ps * 1_000_000,
        duration_ps=executable.simulation.duration_ps * 1_000_000,
    )
    rows = tables(dataclasses.replace(executable, simulation=long))["DmaUsage"]
    assert MOST_WINDOWS <= len(rows["timestamp"]) <= MOST_WINDOWS + 1
    assert rows["total_transfer_bytes"][-1] == 64 + 32


def test_mfu_is_work_against_the_peak_and_ends_in_rest(made):
    rows = made["MfuUsage"]
    assert all(0 <= value <= 1 for value in rows["mfu"])
    assert rows["mfu"][-1] == 0
    flops = sum(made["Instruction"]["raw_flops"]) - sum(made["Instruction"]["flops_transpose"])
    assert flops > 0
    lengths = [after - before for before, after in zip(rows["timestamp"], rows["timestamp"][1:])]
    done = sum(value * length for value, length in zip(rows["mfu"], lengths)) * 1e-9
    assert done * hardware.get("trn2", lnc=1).peak_flops("bf16") == pytest.approx(flops, rel=1e-5)


def test_transfers_under_way(made):
    rows = made["PendingDma"]
    assert list(zip(rows["timestamp"], rows["value"])) == [
        (10_000, 1),
        (12_000, 0),
        (12_500, 1),
        (15_000, 0),
    ]


def test_throttled_and_free_stretches(made):
    rows = made["Throttle"]
    assert list(zip(rows["timestamp"], rows["duration"], rows["type"], rows["k"], rows["n"])) == [
        (10_000, 3_000, "1", 4, 8),
        (13_000, 2_000, "0", 8, 8),
    ]
