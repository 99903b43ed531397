import json
from dataclasses import replace

import numpy as np
import pytest

from neuron_tools.capture.definitions import DefinitionsWriter
from neuron_tools.capture.process_log import ProcessLog, claim_process_directory
from neuron_tools.errors import NeuronToolsError
from neuron_tools.records.capture_log import EVENTS_FILE, RECORD_DTYPE, RecordKind
from neuron_tools.records.executable import save, save_shared
from neuron_tools.records.program import Frame
from tests.unit.capture.programs import fused_executable


def write_records(directory, count, extra=b""):
    records = np.zeros(count, RECORD_DTYPE)
    records["kind"] = RecordKind.VIEW
    records["sequence"] = np.arange(count)
    with (directory / EVENTS_FILE).open("ab") as file:
        file.write(records.tobytes() + extra)


def test_records_are_handed_out_once_and_in_order(tmp_path):
    log = ProcessLog(tmp_path)
    write_records(tmp_path, 3)
    assert log.pending() == 3
    assert log.read(2)["sequence"].tolist() == [0, 1]
    assert log.read(2)["sequence"].tolist() == [2]
    assert len(log.read(2)) == 0


def test_a_log_is_whole_at_its_end_or_where_nothing_came_after_the_last_rest(tmp_path):
    log, writer = ProcessLog(tmp_path), DefinitionsWriter(tmp_path)
    write_records(tmp_path, 3)
    log.read(9)
    assert not log.is_whole
    writer.write("rest", record_count=3)
    log.read(9)
    assert log.is_whole
    write_records(tmp_path, 1)
    log.read(9)
    assert not log.is_whole
    writer.write("end")
    log.read(9)
    assert log.is_whole


def test_half_a_record_waits_for_its_rest(tmp_path):
    log = ProcessLog(tmp_path)
    record = np.zeros(1, RECORD_DTYPE)
    record["kind"], record["sequence"] = RecordKind.VIEW, 7
    write_records(tmp_path, 1, extra=record.tobytes()[:50])
    assert len(log.read(10)) == 1
    with (tmp_path / EVENTS_FILE).open("ab") as file:
        file.write(record.tobytes()[50:])
    assert log.read(10)["sequence"].tolist() == [7]


def test_definitions_are_read_as_they_were_written(tmp_path):
    writer = DefinitionsWriter(tmp_path)
    writer.stack(1, [("a.py", 3, "f"), ("b.py", 9, "<module>")])
    writer.name(2, "aten::add")
    writer.write("module", id=4, path="GPT.head", **{"class": "Linear"})
    log = ProcessLog(tmp_path)
    log.read(1)
    assert log.definitions.stacks[1] == (Frame("a.py", 3, "f"), Frame("b.py", 9, "<module>"))
    assert log.definitions.names[2] == "aten::add"
    assert log.definitions.modules[4].path == "GPT.head"


def test_a_damaged_definition_becomes_a_warning(tmp_path):
    (tmp_path / "definitions.jsonl").write_text(
        '{"kind": "stack"}\nnot json\n' + json.dumps({"kind": "name", "id": 1, "text": "x"}) + "\n"
    )
    log = ProcessLog(tmp_path)
    log.read(1)
    assert len(log.definitions.warnings) == 2
    assert log.definitions.names[1] == "x"


def test_a_missing_or_damaged_executable_is_none(tmp_path):
    (tmp_path / "executables").mkdir()
    (tmp_path / "executables/000001.npz").write_bytes(b"not a zip")
    DefinitionsWriter(tmp_path).write("executable", id=1, file="executables/000001.npz")
    log = ProcessLog(tmp_path)
    log.read(1)
    assert log.executable(1) is None
    assert log.executable(2) is None


def test_a_file_of_another_executable_is_none(tmp_path):
    executable = fused_executable(8, "graph")
    (tmp_path / "executables").mkdir()
    save(executable, tmp_path / "executables/000008.npz")
    for number in (7, 8):
        DefinitionsWriter(tmp_path).write("executable", id=number, file="executables/000008.npz")
    log = ProcessLog(tmp_path)
    log.read(1)
    assert log.executable(7) is None
    assert log.executable(8) is not None


def test_each_process_claims_its_own_folder(tmp_path):
    names = [claim_process_directory(tmp_path / "log").name for _ in range(3)]
    assert names == ["process-0000", "process-0001", "process-0002"]


def test_an_unwritable_log_folder_is_one_sentence(tmp_path):
    (tmp_path / "log").write_text("a file")
    with pytest.raises(NeuronToolsError, match="cannot be written"):
        claim_process_directory(tmp_path / "log")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("kind", 0),
        ("kind", 200),
        ("host_end_ns", -1),
        ("host_start_ns", 1 << 62),
        ("device_start_ns", 5),
        ("bytes", -8),
    ],
)
def test_records_that_cannot_be_true_are_left_out_and_counted(tmp_path, column, value):
    records = np.zeros(3, RECORD_DTYPE)
    records["kind"], records["sequence"] = RecordKind.VIEW, [0, 1, 2]
    records[column][1] = value
    (tmp_path / EVENTS_FILE).write_bytes(records.tobytes())
    log = ProcessLog(tmp_path)
    assert log.read(10)["sequence"].tolist() == [0, 2]
    assert log.damaged == 1


def test_a_block_of_damaged_records_does_not_end_the_log(tmp_path):
    records = np.zeros(5, RECORD_DTYPE)
    records["kind"][4] = RecordKind.VIEW
    (tmp_path / EVENTS_FILE).write_bytes(records.tobytes())
    assert len(ProcessLog(tmp_path).read(2)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "3",
        "[]",
        '{"kind": "stack", "id": 1, "frames": [["a.py", "x", "f"]]}',
        '{"kind": "name", "id": {}, "text": "x"}',
        '{"kind": "module", "id": 1, "path": 5, "class": "Linear"}',
        '{"kind": "process", "first_core": []}',
        '{"kind": "executable", "id": 1, "file": null}',
        '{"kind": "name", "id": 1e400, "text": "x"}',
        "[" * 100_000,
    ],
)
def test_a_line_of_the_wrong_shape_becomes_a_warning(tmp_path, line):
    (tmp_path / "definitions.jsonl").write_text(line + "\n")
    log = ProcessLog(tmp_path)
    log.read(1)
    assert [category for _, category in log.definitions.warnings] == ["log"]


def test_texts_that_are_no_utf8_are_spelled_out(tmp_path):
    writer = DefinitionsWriter(tmp_path)
    writer.stack(1, [("caf\udce9.py", 3, "f\nnew line \u2028 \U0001f600")])
    writer.write("process", command=["python", "caf\udce9.py"])
    log = ProcessLog(tmp_path)
    log.read(1)
    assert log.definitions.stacks[1] == (Frame("caf\\udce9.py", 3, "f\nnew line \u2028 \U0001f600"),)
    assert log.definitions.process.command == ("python", "caf\\udce9.py")


def test_nothing_is_written_after_the_definitions_are_closed(tmp_path):
    writer = DefinitionsWriter(tmp_path)
    writer.name(1, "x")
    writer.close()
    writer.name(2, "y")
    writer.close()
    assert len((tmp_path / "definitions.jsonl").read_text().splitlines()) == 1


def test_ranks_are_numbered_alike_whichever_comes_first(tmp_path):
    log = tmp_path / "log"
    launcher = claim_process_directory(log)
    ranks = [claim_process_directory(log, rank, 2).name for rank in (1, 0)]
    worker_of_a_rank = claim_process_directory(log, 1, 2)
    assert (launcher.name, ranks) == ("process-0000", ["process-0002", "process-0001"])
    assert worker_of_a_rank.name == "process-0003"


def of_layer(executable, number):
    rows = tuple(replace(row, module_path=f"layers.{number}") for row in executable.program.framework)
    return replace(executable, number=number, program=replace(executable.program, framework=rows))


def test_executables_of_the_same_code_hold_its_tables_once(tmp_path):
    writer, first = DefinitionsWriter(tmp_path), fused_executable()
    save(first, tmp_path / "first.npz")
    writer.write("executable", id=first.number, file="first.npz")
    for number in (101, 102):
        save_shared(of_layer(first, number), tmp_path / f"{number}.npz", tmp_path / "first.npz")
        writer.write("executable", id=number, file=f"{number}.npz")
    log = ProcessLog(tmp_path)
    log.read(1)
    second, third = log.executable(101), log.executable(102)
    assert second.program.instructions is third.program.instructions
    assert second.simulation is third.simulation
    assert [each.program.framework[0].module_path for each in (second, third)] == ["layers.101", "layers.102"]


def test_files_that_name_each_other_hold_no_code(tmp_path):
    writer, first = DefinitionsWriter(tmp_path), fused_executable()
    for number, other in ((101, 102), (102, 101)):
        save_shared(of_layer(first, number), tmp_path / f"{number}.npz", tmp_path / f"{other}.npz")
        writer.write("executable", id=number, file=f"{number}.npz")
    log = ProcessLog(tmp_path)
    log.read(1)
    assert log.executable(101) is None
