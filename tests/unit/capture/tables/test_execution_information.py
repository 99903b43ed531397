import dataclasses

from neuron_tools.capture.executions import Execution
from neuron_tools.capture.tables.execution_information import ExecutionInformation
from neuron_tools.records.program import joined_cores
from tests.unit.capture.programs import copy_and_scale, fused_executable
from tests.unit.capture.replayed import NO_ORIGIN, plain


def rows(information, *executions, executables):
    ends = [start_ns + 10 for _, start_ns, *_ in executions]
    columns = information.rows([Execution(*each, (NO_ORIGIN,)) for each in executions], ends, executables)
    return {name: plain(values) for name, values in columns.items()}


def test_each_execution_has_its_executables_facts_and_its_own_number():
    executables = {7: fused_executable(7), 9: dataclasses.replace(fused_executable(9), name="other")}
    information = ExecutionInformation(process_idx=2, logical_core_size=1)
    first = rows(information, (9, 100, 3), (7, 200, 0), executables=executables)
    assert first["execution_index"] == [0, 1]
    assert first["executable_idx"] == [9, 7]
    assert first["neff_name"] == ["other", executables[7].name]
    assert first["execution_start_ts"] == [100, 200]
    assert first["execution_end_ts"] == [110, 210]
    assert first["pcore_idx"] == [3, 0]
    assert first["process_idx"] == [2, 2]
    assert first["row_count"] == [len(executables[7].program.instructions)] * 2
    assert rows(information, (7, 300, 0), executables=executables)["execution_index"] == [2]


def test_each_physical_core_has_a_row():
    program = joined_cores([copy_and_scale(), copy_and_scale()])
    both = dataclasses.replace(fused_executable(8), program=program)
    alone = fused_executable(7)
    information = ExecutionInformation(process_idx=0, logical_core_size=2)
    found = rows(information, (8, 0, 1), (8, 50, 0), executables={7: alone, 8: both})
    assert found["execution_index"] == [0, 0, 1, 1]
    assert found["pcore_idx"] == [2, 3, 0, 1]
    assert found["row_count"] == [len(each.instructions) for each in program.of_cores] * 2
