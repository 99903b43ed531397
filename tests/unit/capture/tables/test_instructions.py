import pytest

from tests.unit.capture.programs import fused_executable
from tests.unit.capture.replayed import CALLER, tables


@pytest.fixture(scope="module")
def rows():
    return tables(fused_executable(), start_ns=10_000, first_id=1_000, core=1)["Instruction"]


def test_times_are_the_executions_start_plus_whole_nanoseconds(rows):
    assert rows["start_ts"] == [10_000, 12_000, 12_300, 12_500]
    assert rows["end_ts"] == [10_050, 12_250, 12_450, 12_550]
    assert rows["duration_ns"] == [50, 250, 150, 50]


def test_what_ran_where(rows):
    assert rows["engine"] == rows["timeline_track"] == ["Sync", "Tensor", "Scalar", "Sync"]
    assert rows["opcode"] == ["DMA_TRIGGER", "MATMUL", "ACTIVATE", "DMA_TRIGGER"]
    assert rows["tensor_instruction_type"] == [None, "REGULAR", None, None]
    assert rows["scalar_activation_fn"] == [None, None, "relu", None]
    assert rows["pcore_idx"] == [1] * 4
    assert rows["pc"] == rows["raw_bir_id"] == [0, 1, 2, 3]
    assert rows["bir_id"] == ["sg0000:0", "sg0000:1", "sg0000:2", "sg0000:3"]


def test_waits_and_what_ended_them(rows):
    assert rows["evt_wait_time_ns"] == [0, 2_000, 2_300, 2_440]
    assert rows["dma_wait_time_ns"] == [950, 0, 0, 950]
    assert rows["wait_cause_id"] == [None, 1_008, 1_005, 1_006]


def test_each_row_reaches_its_hlo_and_framework_operation(rows):
    assert rows["id"] == [1_004, 1_005, 1_006, 1_007]
    assert rows["raw_hlo_id"] == [1_002, 1_002, 1_002, 1_003]
    assert rows["raw_framework_id"] == [1_000, 1_000, 1_000, 1_001]
    assert rows["hlo_name"] == ["fusion.1"] * 3 + ["copy.2"]
    assert rows["framework_name"] == ["aten::addmm"] * 3 + ["aten::relu"]


def test_a_graphs_rows_have_the_place_of_their_operation(rows):
    assert rows["layer"] == ["/net/fc"] * 3 + ["/net/act"]
    assert rows["source_file"] == ["net.py"] * 4
    assert rows["source_line"] == [11, 11, 11, 12]
    assert rows["is_backward"] == [False, False, False, True]


def test_counters_of_each_row(rows):
    assert rows["hbm_read_bytes"] == [64, 0, 0, 0]
    assert rows["hbm_write_bytes"] == [0, 0, 0, 32]
    assert rows["psum_write_bytes"] == [0, 64, 0, 0]
    assert rows["psum_read_sbuf_write_bytes"] == [0, 0, 32, 0]
    assert rows["weight_queue_bytes"] == [64, 0, 0, 0]
    assert rows["raw_flops"] == [0, 2 * 4 * 4 * 4, 0, 0]


def test_an_eager_operations_rows_have_the_place_of_the_call():
    rows = tables(fused_executable(kind="eager"), origin=CALLER)["Instruction"]
    assert rows["layer"] == ["/caller"] * 4
    assert rows["source_file"] == ["call.py"] * 4
    assert rows["source_line"] == [5] * 4
    assert rows["is_backward"] == [False] * 4
    assert rows["framework_name"] == ["aten::addmm"] * 3 + ["aten::relu"]
