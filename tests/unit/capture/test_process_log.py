import json

import numpy as np
import pytest

from neuron_tools.capture.definitions import DefinitionsWriter
from neuron_tools.capture.process_log import ProcessLog, claim_process_directory
from neuron_tools.capture.record import EVENTS_FILE, RECORD_DTYPE
from neuron_tools.errors import NeuronToolsError
from neuron_tools.simulator.program import Frame


def write_records(directory, count, extra=b""):
    records = np.zeros(count, RECORD_DTYPE)
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


def test_half_a_record_waits_for_its_rest(tmp_path):
    log = ProcessLog(tmp_path)
    write_records(tmp_path, 1, extra=b"\0" * 50)
    assert len(log.read(10)) == 1
    with (tmp_path / EVENTS_FILE).open("ab") as file:
        file.write(b"\0" * (RECORD_DTYPE.itemsize - 50))
    assert len(log.read(10)) == 1


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


def test_each_process_claims_its_own_folder(tmp_path):
    names = [claim_process_directory(tmp_path / "log").name for _ in range(3)]
    assert names == ["process-0000", "process-0001", "process-0002"]


def test_an_unwritable_log_folder_is_one_sentence(tmp_path):
    (tmp_path / "log").write_text("a file")
    with pytest.raises(NeuronToolsError, match="cannot be written"):
        claim_process_directory(tmp_path / "log")
