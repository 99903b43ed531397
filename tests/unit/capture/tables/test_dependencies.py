import dataclasses

import numpy as np
import pytest

from tests.unit.capture.programs import fused_executable
from tests.unit.capture.replayed import tables


@pytest.fixture(scope="module")
def made():
    return tables(fused_executable(), start_ns=10_000, first_id=1_000)


def flows(rows):
    names = ("in_table", "in_id", "out_table", "out_id", "dependency_type", "gap_time")
    return list(zip(*(rows[name] for name in names)))


def test_flows_go_from_what_released_to_what_waited(made):
    assert flows(made["Flow"]) == [
        ("DmaPacketAggregated", 1_008, "Instruction", 1_005, "semaphore", 0),
        ("Instruction", 1_005, "Instruction", 1_006, "semaphore", 50),
        ("Instruction", 1_006, "Instruction", 1_007, "semaphore", 50),
        ("Instruction", 1_004, "DmaPacketAggregated", 1_008, "dma_trigger", 950),
        ("Instruction", 1_007, "DmaPacketAggregated", 1_009, "dma_trigger", 950),
    ]


def test_a_release_that_overlaps_has_no_negative_gap():
    executable = fused_executable()
    early = executable.simulation.start_ps.copy()
    early[2] = 2_100_000
    simulation = dataclasses.replace(executable.simulation, start_ps=early)
    rows = tables(dataclasses.replace(executable, simulation=simulation))["Flow"]
    assert min(rows["gap_time"]) == 0


def test_nothing_waited_for_is_no_flow():
    executable = fused_executable()
    free = dataclasses.replace(executable.simulation, wait_cause=np.full(4, -1, np.int32))
    rows = tables(dataclasses.replace(executable, simulation=free))
    assert rows["Flow"]["dependency_type"] == ["dma_trigger", "dma_trigger"]
    assert rows["Instruction"]["wait_cause_id"] == [None] * 4


def test_semaphores_count_up_at_the_end_of_what_signals_them(made):
    rows = made["SemaphoreUpdate"]
    assert list(zip(rows["id"], rows["update_source"], rows["timestamp"], rows["value"])) == [
        ("S[0]", "Tensor", 12_250, 1),
        ("S[1]", "Scalar", 12_450, 1),
        ("S[2]", "DMA", 12_000, 1),
    ]


def test_a_semaphores_value_is_the_sum_so_far_in_time_order():
    executable = fused_executable()
    instructions, dmas = executable.program.instructions.copy(), executable.program.dmas.copy()
    instructions["signal"] = [5, 5, 9, -1]
    dmas["semaphore"], dmas["increment"] = [5, 9], [16, 16]
    program = dataclasses.replace(executable.program, instructions=instructions, dmas=dmas)
    rows = tables(dataclasses.replace(executable, program=program))["SemaphoreUpdate"]
    assert list(zip(rows["id"], rows["update_source"], rows["timestamp"], rows["value"])) == [
        ("S[5]", "Sync", 50, 1),
        ("S[5]", "DMA", 2_000, 17),
        ("S[5]", "Tensor", 2_250, 18),
        ("S[9]", "Scalar", 2_450, 1),
        ("S[9]", "DMA", 5_000, 17),
    ]
