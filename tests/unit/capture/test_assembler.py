import json
import os
import tempfile
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from neuron_tools.capture import assembler as assembler_module, process_assembler
from neuron_tools.capture.assembler import Assembler
from neuron_tools.capture.definitions import FILE_NAME
from neuron_tools.capture.log_lock import is_in_use
from neuron_tools.capture.options import CaptureOptions
from neuron_tools.errors import UsageError
from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.verify import verify
from neuron_tools.profile.writer import ProfileWriteError, ProfileWriter
from neuron_tools.records.capture_log import EVENTS_FILE, RECORD_DTYPE, RecordKind
from tests.unit.capture.logs import both, host, one_step, record, write_log
from tests.unit.capture.programs import fused_executable

COMMAND = ["python", "train.py"]
EXECUTABLES = (fused_executable(7, "eager"), fused_executable(8, "graph"))


def options(folder, **changes):
    return CaptureOptions(folder / "run.nprof", **changes)


def assemble(folder, *logs, polls=0, host_clock="fixed", executables=EXECUTABLES, **log_options):
    """The profile made of the records of each process."""
    assembler = Assembler(options(folder, host_clock=host_clock), COMMAND)
    for index, records in enumerate(logs):
        write_log(folder / f"run.nprof/log/process-{index:04d}", records, executables, **log_options)
        for _ in range(polls):
            assembler.poll()
    report = assembler.finish(complete=True, exit_status=0)
    return open_profile(folder / "run.nprof"), report


def rows(profile, sql):
    return [tuple(row.values()) for row in profile.query(sql).to_pylist()]


def everything(profile):
    return {name: profile.arrow(name).to_pylist() for name in profile.tables()}


def test_a_step_becomes_exact_rows(tmp_path):
    profile, report = assemble(tmp_path, one_step())
    assert (report.processes, report.executions, report.complete) == (1, 3, True)
    assert rows(
        profile, "SELECT id, layer, is_backward, source_line FROM FrameworkInstruction ORDER BY id"
    ) == [
        (0, "/net/fc", False, 11),
        (1, "/net/fc", False, 11),
        (10, "/net/fc", True, 11),
        (11, "/net/fc", True, 11),
        (20, "/net/fc", False, 11),
        (21, "/net/act", True, 12),
    ]
    assert rows(
        profile,
        "SELECT execution_index, neff_name, execution_start_ts, execution_end_ts, executable_idx"
        " FROM ExecutionInfo",
    ) == [(0, "step", 1_200, 6_200, 7), (1, "step", 6_300, 11_300, 7), (2, "step", 11_400, 16_400, 8)]
    assert rows(profile, "SELECT executable_idx, kind, execution_count FROM Executable") == [
        (7, "eager", 2),
        (8, "graph", 1),
    ]
    assert rows(profile, "SELECT timestamp, total_bytes FROM SystemProfileHbmUsage") == [
        (1_000, 4_096),
        (1_140, 0),
    ]
    assert rows(profile, "SELECT variable_name FROM TensorInfo") == [("fc.weight",), ("out",)]
    assert rows(profile, "SELECT last_hw_timestamp, last_ts FROM Metadata") == [
        (16_550, "1970-01-01T00:00:00.000016550Z")
    ]


def test_a_profile_of_the_log_breaks_no_rule(tmp_path):
    records = [row for step in range(4) for row in one_step(1_000 + 40_000 * step)]
    profile, _ = assemble(tmp_path, records)
    assert [str(breach) for breach in verify(profile)] == []


def test_every_stack_of_a_row_leads_to_named_frames(tmp_path):
    profile, _ = assemble(tmp_path, one_step())
    found = rows(
        profile,
        "SELECT DISTINCT f.name AS file, l.line_number, u.name FROM Instruction i"
        " JOIN StackFrame s ON s.id = i.stack_frame_ids"
        " JOIN StackFrameFileLocation l ON l.id = s.file_location_id"
        " JOIN StackFrameFileName f ON f.id = l.file_name_id"
        " JOIN StackFrameFunctionName u ON u.id = l.function_name_id ORDER BY ALL",
    )
    assert found == [("net.py", 11, "forward"), ("net.py", 12, "forward")]


def in_blocks(block, polls):
    """The rows of three steps, before anything is derived from them."""
    records = [row for step in range(3) for row in one_step(1_000 + 40_000 * step)]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(process_assembler, "BLOCK_RECORDS", block)
        patch.setattr(assembler_module, "derive_tables", lambda *arguments: None)
        profile, _ = assemble(Path(folder), records, polls=polls)
        with profile:
            return everything(profile)


@cache
def in_one_block():
    return in_blocks(1_000, 0)


@settings(max_examples=10, deadline=None)
@given(block=st.integers(1, 12), polls=st.integers(0, 2))
def test_blocks_of_any_size_give_the_same_rows(block, polls):
    found = in_blocks(block, polls)
    assert found.keys() == in_one_block().keys()
    for table, expected in in_one_block().items():
        assert found[table] == expected, table


def test_processes_are_told_apart(tmp_path):
    profile, report = assemble(tmp_path, one_step(), one_step(), host_clock="measured")
    assert report.processes == 2
    ids = rows(profile, "SELECT process_idx, min(id), max(id) FROM Instruction GROUP BY ALL ORDER BY ALL")
    assert [process for process, _, _ in ids] == [0, 1]
    assert ids[1][1] >= 1 << 48 > ids[0][2]
    assert rows(profile, "SELECT count(*) - count(DISTINCT id) FROM SystemProfileEvents") == [(0,)]
    assert [str(breach) for breach in verify(profile)] == []


def test_a_range_that_began_before_the_first_thing_told_begins_at_zero(tmp_path):
    records = [
        both(RecordKind.GRAPH, 5_000, 6_000, 5_000, executable=8, stack=1, name=2),
        host(RecordKind.RANGE, 1_000, 9_000, name=3),
    ]
    process = {"process_id": 77, "start_unix_ns": 10**18}
    profile, _ = assemble(tmp_path, records, host_clock="measured", process=process)
    assert rows(profile, "SELECT name, start_ts, end_ts FROM HostSpan ORDER BY ALL") == [
        ("epoch\n1", 0, 4_000),
        ("step", 0, 10),
    ]
    assert rows(profile, "SELECT execution_start_ts FROM ExecutionInfo") == [(1_000,)]


def test_device_work_told_late_by_another_thread_keeps_its_length(tmp_path):
    records = [
        both(RecordKind.GRAPH, 5_000, 20_000, 5_000, executable=8, stack=1, name=2),
        both(RecordKind.GRAPH, 4_000, 4_100, 5_000, executable=8, stack=1, name=2, thread=2),
    ]
    process = {"start_unix_ns": 10**18}
    profile, _ = assemble(tmp_path, records, host_clock="measured", process=process)
    executions = "SELECT execution_start_ts, execution_end_ts FROM ExecutionInfo ORDER BY ALL"
    assert rows(profile, executions) == [(0, 5_000), (15_000, 20_000)]


def test_two_processes_share_one_clock(tmp_path):
    assembler = Assembler(options(tmp_path), COMMAND)
    for index, (start_unix_ns, at_ns) in enumerate([(10**18, 5_000), (10**18 + 700, 5_000)]):
        graph = both(RecordKind.GRAPH, at_ns, at_ns + 100, 5_000, executable=8)
        log = tmp_path / f"run.nprof/log/process-{index:04d}"
        write_log(log, [graph], EXECUTABLES, process={"start_unix_ns": start_unix_ns})
    assembler.finish(complete=True, exit_status=0)
    profile = open_profile(tmp_path / "run.nprof")
    assert rows(profile, "SELECT process_idx, execution_start_ts FROM ExecutionInfo ORDER BY ALL") == [
        (0, 100),
        (1, 800),
    ]


def write_graph(folder, index, start_unix_ns, at_ns=5_000):
    graph = both(RecordKind.GRAPH, at_ns, at_ns + 100, at_ns, executable=8)
    log = folder / f"run.nprof/log/process-{index:04d}"
    write_log(log, [graph], EXECUTABLES, process={"start_unix_ns": start_unix_ns})


def test_the_capture_begins_with_the_process_that_began_first_though_it_told_later(tmp_path):
    assert starts_of_two(tmp_path, time.time_ns()) == [(0, 800), (1, 100)]


def test_a_process_that_tells_far_too_late_is_moved_to_the_beginning(tmp_path):
    assert starts_of_two(tmp_path, 10**18) == [(0, 100), (1, 90)]


def starts_of_two(folder, start_unix_ns):
    """When two processes' executions start, of which the second began 700 ns sooner and told later."""
    assembler = Assembler(options(folder), COMMAND)
    write_graph(folder, 0, start_unix_ns)
    assembler.poll()
    write_graph(folder, 1, start_unix_ns - 700)
    assembler.finish(complete=True, exit_status=0)
    executions = "SELECT process_idx, execution_start_ts FROM ExecutionInfo ORDER BY ALL"
    return rows(open_profile(folder / "run.nprof"), executions)


def test_a_range_that_a_process_tells_late_does_not_move_the_process(tmp_path):
    assembler = Assembler(options(tmp_path), COMMAND)
    write_graph(tmp_path, 0, 10**18)
    assembler.poll()
    records = [
        host(RecordKind.RANGE, 1_000, 9_000, name=3),
        both(RecordKind.GRAPH, 9_000, 9_100, 9_000, executable=8),
    ]
    log = tmp_path / "run.nprof/log/process-0001"
    write_log(log, records, EXECUTABLES, process={"start_unix_ns": 10**18})
    assembler.finish(complete=True, exit_status=0)
    profile = open_profile(tmp_path / "run.nprof")
    executions = "SELECT process_idx, execution_start_ts FROM ExecutionInfo ORDER BY ALL"
    assert rows(profile, executions) == [(0, 100), (1, 4_100)]


def test_a_capture_without_processes_is_a_complete_empty_profile(tmp_path):
    profile, report = assemble(tmp_path)
    assert (report.processes, report.executions, report.complete) == (0, 0, True)
    assert profile.complete
    assert [str(breach) for breach in verify(profile)] == []


def test_a_process_that_recorded_nothing_is_named(tmp_path):
    profile, report = assemble(tmp_path, [], process={"process_id": 5, "command": ["python", "-c", "a b\nc"]})
    assert report.complete
    assert rows(profile, "SELECT process_id, command FROM ProcessInfo") == [(5, "python -c 'a b\nc'")]
    assert [str(breach) for breach in verify(profile)] == []


def test_a_process_that_was_killed_leaves_an_incomplete_profile(tmp_path):
    profile, report = assemble(tmp_path, one_step(), ended=False)
    assert not report.complete
    assert not profile.complete
    assert [str(breach) for breach in verify(profile)] == []


def test_only_the_commands_own_process_has_its_exit_status(tmp_path):
    assembler = Assembler(options(tmp_path), COMMAND)
    for index, parent in enumerate([os.getpid(), 1]):
        write_log(tmp_path / f"run.nprof/log/process-{index:04d}", [], process={"parent_id": parent})
    assembler.finish(complete=True, exit_status=3)
    profile = open_profile(tmp_path / "run.nprof")
    assert rows(profile, "SELECT process_idx, exit_status FROM ProcessInfo ORDER BY ALL") == [
        (0, 3),
        (1, None),
    ]


@pytest.mark.parametrize("rank", [None, 0, 3])
def test_a_processes_rank_is_kept(tmp_path, rank):
    profile, _ = assemble(tmp_path, [], process={"rank": rank})
    assert rows(profile, "SELECT rank FROM ProcessInfo") == [(rank,)]


def test_a_missing_executable_is_a_warning_and_the_rest_is_kept(tmp_path):
    profile, report = assemble(tmp_path, one_step(), executables=EXECUTABLES[:1])
    assert report.executions == 2
    assert rows(profile, "SELECT message FROM Warning WHERE category = 'log'") == [
        ("Executable 8 is missing from the log: its executions have no rows.",)
    ]
    assert rows(profile, "SELECT count(*) FROM HostSpan") == [(7,)]
    assert [str(breach) for breach in verify(profile)] == []


def test_damaged_records_are_one_warning(tmp_path):
    damaged = [record(RecordKind.GRAPH, host_start_ns=-5), np.zeros(1, RECORD_DTYPE)]
    profile, _ = assemble(tmp_path, [*damaged, *one_step(), *damaged])
    assert rows(profile, "SELECT message FROM Warning WHERE category = 'log'") == [
        ("Damaged records of the capture log were left out.",)
    ]


@settings(max_examples=8, deadline=None)
@given(
    definitions=st.binary(max_size=300),
    events=st.binary(max_size=400),
    at=st.integers(0, 800),
    executable=st.binary(max_size=100),
)
def test_a_log_damaged_anywhere_still_gives_a_profile(definitions, events, at, executable):
    with tempfile.TemporaryDirectory() as folder:
        assembler = Assembler(options(Path(folder)), COMMAND)
        log = write_log(Path(folder) / "run.nprof/log/process-0000", one_step(), EXECUTABLES)
        for name, damage in (
            (EVENTS_FILE, events),
            (FILE_NAME, definitions),
            ("executables/000008.npz", executable),
        ):
            content = (log / name).read_bytes()
            (log / name).write_bytes(content[:at] + damage + content[at + len(damage) :])
        report = assembler.finish(complete=True, exit_status=0)
        with open_profile(report.directory) as profile:
            assert profile.tables()["Metadata"] == 1


def test_texts_that_are_no_utf8_reach_the_profile_spelled_out(tmp_path):
    assembler = Assembler(options(tmp_path), ["python", "caf\udce9.py"])
    log = write_log(tmp_path / "run.nprof/log/process-0000", one_step(), EXECUTABLES)
    with (log / FILE_NAME).open("a") as file:
        stack = {"kind": "stack", "id": 2, "frames": [["caf\udce9\n.py", 1, "f\x00\U0001f600"]]}
        file.write(json.dumps(stack) + "\n")
    assembler.finish(complete=True, exit_status=0)
    profile = open_profile(tmp_path / "run.nprof")
    assert profile.metadata["command"] == ["python", "caf\\udce9.py"]
    assert ("caf\\udce9\n.py",) in rows(profile, "SELECT name FROM StackFrameFileName")
    assert ("caf\\udce9\n.py", 1) in rows(
        profile, "SELECT DISTINCT source_file, source_line FROM Instruction"
    )


def test_written_rows_can_be_read_while_the_command_runs(tmp_path):
    assembler = Assembler(options(tmp_path), COMMAND)
    write_log(tmp_path / "run.nprof/log/process-0000", one_step(), EXECUTABLES)
    assembler.poll()
    with open_profile(tmp_path / "run.nprof") as profile:
        assert not profile.complete
        assert profile.tables()["Instruction"] == 12
    assembler.finish(complete=True, exit_status=0)


@pytest.mark.parametrize(
    "wrong", [{"target": "trn99"}, {"settings": ("nonsense=2x",)}, {"settings": ("hbm_bandwidth=fast",)}]
)
def test_what_cannot_be_simulated_is_refused_before_anything_is_made(tmp_path, wrong):
    with pytest.raises(UsageError):
        Assembler(options(tmp_path, **wrong), COMMAND)
    assert list(tmp_path.iterdir()) == []


def test_a_profile_is_never_overwritten(tmp_path):
    assemble(tmp_path)
    with pytest.raises(UsageError, match="exists"):
        Assembler(options(tmp_path), COMMAND)


def test_the_log_is_in_use_until_the_profile_is_finished(tmp_path):
    assembler = Assembler(options(tmp_path), COMMAND)
    assert is_in_use(tmp_path / "run.nprof/log")
    assembler.finish(complete=True, exit_status=0)
    assert not (tmp_path / "run.nprof/log").exists()


def test_a_full_disk_while_the_command_runs_keeps_the_log(tmp_path, monkeypatch):
    assembler = Assembler(options(tmp_path), COMMAND)
    write_log(tmp_path / "run.nprof/log/process-0000", one_step(), EXECUTABLES)
    with monkeypatch.context() as full:
        full.setattr(ProfileWriter, "flush", refuse)
        with pytest.raises(ProfileWriteError):
            assembler.poll()
    report = assembler.finish(complete=True, exit_status=0)
    assert not report.complete
    assert (tmp_path / "run.nprof/log/process-0000" / EVENTS_FILE).exists()
    assert not is_in_use(tmp_path / "run.nprof/log")


def test_a_full_disk_at_the_end_keeps_the_log_and_frees_it(tmp_path, monkeypatch):
    assembler = Assembler(options(tmp_path), COMMAND)
    write_log(tmp_path / "run.nprof/log/process-0000", one_step(), EXECUTABLES)
    monkeypatch.setattr(ProfileWriter, "flush", refuse)
    with pytest.raises(ProfileWriteError):
        assembler.finish(complete=True, exit_status=0)
    assert (tmp_path / "run.nprof/log/process-0000" / EVENTS_FILE).exists()
    assert not is_in_use(tmp_path / "run.nprof/log")


def refuse(*arguments):
    raise ProfileWriteError("The profile cannot be written (No space left on device).")


def test_a_profile_that_could_not_be_begun_is_removed(tmp_path):
    Assembler(options(tmp_path), COMMAND).discard()
    assert list(tmp_path.iterdir()) == []


def test_a_poll_ends_at_its_budget_and_the_next_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(process_assembler, "BLOCK_RECORDS", 2)
    assembler = Assembler(options(tmp_path, host_clock="measured"), COMMAND)
    write_log(tmp_path / "run.nprof/log/process-0000", one_step(), EXECUTABLES)
    blocks = []
    advance = process_assembler.ProcessAssembler.advance
    monkeypatch.setattr(
        process_assembler.ProcessAssembler,
        "advance",
        lambda self, **how: blocks.append(advance(self, **how)) or blocks[-1],
    )
    assembler.poll(budget_s=0.0)
    assert blocks == [True]
    assembler.poll(budget_s=60.0)
    assert len(blocks) > 2
    assert blocks[-1] is False
