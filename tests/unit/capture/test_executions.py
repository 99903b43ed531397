import dataclasses

from neuron_tools import hardware
from neuron_tools.capture import executions
from neuron_tools.capture.executions import Execution, ExecutionTables
from neuron_tools.capture.stacks import StackRegistry
from neuron_tools.simulator.simulation import simulate
from tests.unit.capture.programs import copy_and_scale, fused_executable
from tests.unit.capture.replayed import CALLER, NO_ORIGIN, plain

CORE = hardware.get("trn2", lnc=1)


def replayer(*executables, process_idx=0, first_id=0):
    tables = ExecutionTables(CORE, process_idx, first_id, StackRegistry())
    for executable in executables:
        tables.add(executable)
    return tables


def small(number=8):
    program = copy_and_scale()
    return dataclasses.replace(
        fused_executable(number, "eager"), program=program, simulation=simulate(program, CORE)
    )


def test_each_execution_has_its_own_run_of_ids():
    tables = replayer(fused_executable(), small(), first_id=100)
    runs = [
        Execution(7, 0, 0, (NO_ORIGIN,)),
        Execution(8, 9_000, 0, (CALLER,)),
        Execution(7, 99_000, 0, (NO_ORIGIN,)),
    ]
    rows = tables.rows(runs)
    assert plain(rows["FrameworkInstruction"]["id"]) == [100, 101, 110, 117, 118]
    assert plain(rows["Instruction"]["id"]) == [104, 105, 106, 107, 112, 113, 114, 121, 122, 123, 124]
    later = tables.rows([Execution(7, 200_000, 0, (NO_ORIGIN,))])
    assert plain(later["FrameworkInstruction"]["id"]) == [127, 128]


def test_blocks_do_not_change_rows():
    runs = [Execution(7 + n % 2, n * 50_000, n % 3, (CALLER if n % 2 else NO_ORIGIN,)) for n in range(7)]
    together = replayer(fused_executable(), small()).rows(runs)
    tables = replayer(fused_executable(), small())
    apart = [tables.rows([run]) for run in runs]
    for name, columns in together.items():
        for column, values in columns.items():
            pieces = [value for block in apart if name in block for value in plain(block[name][column])]
            assert plain(values) == pieces, (name, column)


def test_blocks_have_a_bounded_number_of_rows_or_one_execution(monkeypatch):
    tables = replayer(fused_executable(), small())
    runs = [Execution(number, 0, 0, (NO_ORIGIN,)) for number in (8, 8, 7, 8)]
    small_rows, large_rows = (
        sum(
            len(columns["process_idx"])
            for columns in replayer(fused_executable(), small()).rows([run]).values()
        )
        for run in (runs[0], runs[2])
    )
    assert small_rows < large_rows
    monkeypatch.setattr(executions, "MOST_ROWS", 2 * small_rows)
    assert list(map(list, tables.blocks(runs))) == [runs[:2], [runs[2]], [runs[3]]]
    monkeypatch.setattr(executions, "MOST_ROWS", 1)
    assert list(map(list, tables.blocks(runs))) == [[run] for run in runs]


def test_kinds_of_execution_are_forgotten_where_they_are_many(monkeypatch):
    monkeypatch.setattr(executions, "MOST_ROWS", 1)
    tables, kept = replayer(fused_executable(), small()), replayer(fused_executable(), small())
    pairs = [[Execution(number, 0, 0, (NO_ORIGIN,))] * 2 for number in (7, 8, 7)]
    rows = [tables.rows(pair) for pair in pairs]
    monkeypatch.setattr(executions, "MOST_ROWS", 1 << 20)
    for block, same in zip(rows, map(kept.rows, pairs)):
        for name, columns in same.items():
            assert {column: plain(values) for column, values in columns.items()} == {
                column: plain(values) for column, values in block[name].items()
            }
    assert tables._laid.rows < kept._laid.rows


def test_process_and_core_stand_in_every_row():
    rows = replayer(fused_executable(), process_idx=5).rows([Execution(7, 0, 3, (NO_ORIGIN,))])
    for name, columns in rows.items():
        assert set(plain(columns["process_idx"])) == {5}, name
        assert set(plain(columns.get("pcore_idx", [3]))) == {3}, name


def test_no_executions_are_no_tables():
    assert replayer(fused_executable()).rows([]) == {}


def test_an_executable_must_be_added():
    tables = replayer(fused_executable())
    assert (tables.knows(7), tables.knows(8)) == (True, False)


def test_both_cores_of_a_logical_one_have_rows_of_their_own():
    core = hardware.get("trn2", lnc=2)
    program = dataclasses.replace(copy_and_scale(), physical_cores=2)
    executable = dataclasses.replace(small(), program=program, simulation=simulate(program, core))
    tables = ExecutionTables(core, 0, 100, StackRegistry())
    tables.add(executable)
    rows = tables.rows([Execution(8, 0, 3, (NO_ORIGIN,))])["Instruction"]
    count = len(program.instructions)
    assert plain(rows["pcore_idx"]) == [6] * count + [7] * count
    assert len(set(plain(rows["id"]))) == 2 * count


def of_layer(executable, number):
    rows = tuple(
        dataclasses.replace(row, module_path=f"layers.{number}") for row in executable.program.framework
    )
    program = dataclasses.replace(executable.program, framework=rows)
    return dataclasses.replace(executable, number=number, program=program)


def test_modules_that_run_the_same_code_keep_its_columns_once_and_their_own_layer():
    executable = fused_executable(kind="graph")
    layers = [of_layer(executable, number) for number in (1, 2)]
    tables = replayer(*layers)
    rows = tables.rows([Execution(number, number * 50_000, 0, (NO_ORIGIN,)) for number in (1, 2)])
    names = plain(rows["FrameworkInstruction"]["layer"])
    assert {name.rpartition("/layers")[2][:2] for name in names} == {"/1", "/2"}
    (first,), (second,) = (tables._rows[number] for number in (1, 2))
    for name, table in second.tables.items():
        same = first.tables[name]
        for columns, others in ((table.numbers, same.numbers), (table.times, same.times)):
            own = {column for column, values in columns.items() if values is not others[column]}
            assert own <= {"executable_idx"}, name
