import dataclasses

from neuron_tools.capture.tables.executables import executable_row, tensor_rows
from neuron_tools.records.program import DType, Tensor, TensorKind
from tests.unit.capture.programs import copy_and_scale, fused_executable


def test_an_executables_row():
    assert executable_row(fused_executable(), process_idx=3, execution_count=12) == {
        "executable_idx": [7],
        "process_idx": [3],
        "name": ["step"],
        "kind": ["graph"],
        "instruction_count": [4],
        "duration_ns": [5_000],
        "compile_time_ns": [1_234],
        "hlo_operation_count": [3],
        "execution_count": [12],
    }


def test_an_unknown_compile_time_is_null():
    executable = dataclasses.replace(fused_executable(), compile_time_ns=0)
    assert executable_row(executable, 0, 0)["compile_time_ns"] == [None]


def test_tensors_and_how_often_they_are_loaded():
    rows = tensor_rows(fused_executable(), process_idx=3)
    assert rows["variable_name"] == ["fc.weight", "out"]
    assert rows["type"] == ["weight", "output"]
    assert rows["format"] == ["f32", "bf16"]
    assert rows["shape"] == ["[4,4]", "[4,4]"]
    assert rows["size"] == [64, 32]
    assert rows["load_to_sbuf_dma_count"] == [1, 0]
    assert rows["load_to_sbuf_total_size_bytes"] == [64, 0]
    assert rows["load_to_sbuf_avg_size_bytes"] == [64, 0]
    assert rows["load_to_sbuf_repeat_factor"] == [1.0, 0.0]
    assert rows["executable_idx"] == rows["node"] == [7, 7]
    assert rows["process_idx"] == [3, 3]


def test_an_empty_tensor_is_not_loaded_infinitely_often():
    program = dataclasses.replace(
        copy_and_scale(), tensors=(Tensor("none", TensorKind.INPUT, DType.F32, (0, 4)),)
    )
    rows = tensor_rows(dataclasses.replace(fused_executable(), program=program), 0)
    assert (rows["size"], rows["load_to_sbuf_repeat_factor"]) == ([0], [0.0])
