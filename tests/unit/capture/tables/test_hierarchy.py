import pytest

from neuron_tools.capture.table_template import ExecutionOrigin
from tests.unit.capture.programs import fused_executable
from tests.unit.capture.replayed import CALLER, tables


@pytest.fixture(scope="module")
def made():
    return tables(fused_executable(), start_ns=10_000, first_id=1_000)


def test_an_hlo_operation_covers_its_instructions_and_transfers(made):
    rows = made["HloInstruction"]
    assert rows["hlo_name"] == ["fusion.1", "copy.2"]
    assert rows["start_ts"] == [10_000, 12_500]
    assert rows["end_ts"] == [12_500, 15_000]
    assert rows["time_intervals"] == ["[[10000,12500]]", "[[12500,15000]]"]


def test_what_executes_nothing_has_no_row(made):
    assert "constant.3" not in made["HloInstruction"]["hlo_name"]
    assert "aten::detach" not in made["FrameworkInstruction"]["framework_name"]


def test_the_work_of_an_hlo_operation(made):
    rows = made["HloInstruction"]
    assert rows["hbm_read_bytes"] == [64, 0]
    assert rows["hbm_write_bytes"] == [0, 32]
    assert rows["sbuf_read_bytes"] == [64, 32]
    assert rows["sbuf_write_bytes"] == [64 + 32, 0]
    assert rows["element_count_per_interval"] == [[16], [0]]
    assert rows["transpose_element_count_per_interval"] == [[0], [0]]
    assert rows["hbm_transfer_size_per_interval"] == [[64], [32]]
    assert rows["model_flops"] == [64, 0]
    assert (rows["hlo_opcode"], rows["shape"]) == (["fusion", "copy"], ["f32[4,4]"] * 2)


def test_a_framework_operation_covers_the_hlo_operations_that_belong_to_it(made):
    rows = made["FrameworkInstruction"]
    assert rows["framework_name"] == ["aten::addmm", "aten::relu"]
    assert rows["start_ts"] == [10_000, 12_500]
    assert rows["end_ts"] == [12_500, 15_000]


def test_a_fused_operations_work_counts_once_for_the_operation_that_names_it(made):
    rows = made["FrameworkInstruction"]
    assert rows["tensor_engine_instruction_count"] == [1, 0]
    assert rows["scalar_engine_instruction_count"] == [1, 0]
    assert rows["sync_engine_instruction_count"] == [1, 1]
    assert rows["hbm_read_bytes"] == [64, 0]
    assert rows["hbm_write_bytes"] == [0, 32]


def test_the_levels_refer_to_each_other(made):
    assert made["HloInstruction"]["id"] == made["HloInstruction"]["raw_hlo_id"] == [1_002, 1_003]
    assert made["HloInstruction"]["raw_framework_id"] == [1_000, 1_001]
    framework = made["FrameworkInstruction"]
    assert framework["id"] == framework["raw_framework_id"] == [1_000, 1_001]
    assert framework["raw_hlo_id"] == [1_002, 1_002]


def test_places_of_both_levels(made):
    for table in ("HloInstruction", "FrameworkInstruction"):
        rows = made[table]
        assert rows["layer"] == ["/net/fc", "/net/act"]
        assert rows["source_line"] == [11, 12]
        assert rows["is_backward"] == [False, True]
        assert rows["executable_idx"] == [7, 7]


def test_every_stack_of_the_program_has_an_id(made):
    leaves = made["FrameworkInstruction"]["stack_frame_ids"]
    assert all(leaves)
    assert leaves[0] != leaves[1]


def test_an_eager_operation_takes_the_place_of_its_execution():
    made = tables(fused_executable(kind="eager"), origin=CALLER)
    for table in ("HloInstruction", "FrameworkInstruction"):
        assert made[table]["layer"] == ["/caller"] * 2
        assert made[table]["source_line"] == [5, 5]
    assert made["FrameworkInstruction"]["stack_frame_ids"] == ["99", "99"]


def test_a_graphs_operation_with_a_line_keeps_it_when_the_call_has_another():
    elsewhere = ExecutionOrigin({"source_file": "call.py", "layer": "/caller"}, {"source_line": 5})
    rows = tables(fused_executable(), origin=elsewhere)["HloInstruction"]
    assert (rows["source_file"], rows["source_line"]) == (["net.py", "net.py"], [11, 12])
