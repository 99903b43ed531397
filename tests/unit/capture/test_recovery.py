import json

import pytest

from neuron_tools.capture.assembler import Assembler
from neuron_tools.capture.definitions import FILE_NAME
from neuron_tools.capture.log_lock import LogLock
from neuron_tools.capture.options import CaptureOptions
from neuron_tools.capture.recovery import RecoveryError, recover, recovery_notice
from neuron_tools.profile.reader import open_profile
from neuron_tools.profile.store.layout import NotAProfileError
from neuron_tools.profile.verify import verify
from neuron_tools.records.capture_log import LOG_VERSION
from tests.unit.capture.logs import one_step, write_log
from tests.unit.capture.programs import fused_executable

EXECUTABLES = (fused_executable(7, "eager"), fused_executable(8, "graph"))
STEPS = [row for step in range(3) for row in one_step(1_000 + 40_000 * step)]


def capture_that_dies(folder, *, ended=True, **options):
    """What a killed capture leaves: part of the tables, and the log."""
    profile = folder / "run.nprof"
    chosen = CaptureOptions(profile, settings=("hbm_bandwidth=2x",), **options)
    assembler = Assembler(chosen, ["python", "train.py"])
    log = write_log(profile / "log/process-0000", STEPS[:9], EXECUTABLES, ended=False)
    assembler.poll()
    assembler._lock.release()
    for path in sorted(log.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    log.rmdir()
    write_log(log, STEPS, EXECUTABLES, ended=ended)
    return profile


def everything(path):
    with open_profile(path) as profile:
        return {name: profile.arrow(name).to_pylist() for name in profile.tables()}


def test_a_recovered_profile_is_the_one_that_the_capture_would_have_written(tmp_path):
    (tmp_path / "whole").mkdir()
    (tmp_path / "cut").mkdir()
    options = CaptureOptions(tmp_path / "whole/run.nprof", settings=("hbm_bandwidth=2x",))
    assembler = Assembler(options, ["python", "train.py"])
    write_log(options.log_directory / "process-0000", STEPS, EXECUTABLES)
    assembler.finish(complete=True, exit_status=0)
    profile = capture_that_dies(tmp_path / "cut")
    report = recover(profile)
    assert (report.complete, report.executions, report.processes) == (True, 9, 1)
    assert everything(profile) == everything(options.directory)
    with open_profile(profile) as opened:
        assert [str(breach) for breach in verify(opened)] == []


def test_the_log_is_gone_and_the_profile_says_that_it_was_recovered(tmp_path):
    profile = capture_that_dies(tmp_path)
    recover(profile)
    facts = json.loads((profile / "profile.json").read_text())
    assert (facts["complete"], facts["recovered"], facts["exit_status"]) == (True, True, None)
    assert facts["settings"] == ["hbm_bandwidth=2x"]
    assert not (profile / "log").exists()
    assert recovery_notice(profile) is None


def test_a_process_that_was_killed_too_leaves_it_incomplete(tmp_path):
    profile = capture_that_dies(tmp_path, ended=False)
    assert not recover(profile).complete


def test_unfinished_parts_are_removed(tmp_path):
    profile = capture_that_dies(tmp_path)
    (profile / "Instruction/part-0000-000009.parquet.writing").write_bytes(b"half")
    recover(profile)
    assert list(profile.glob("*/*.writing")) == []


def test_a_profile_with_a_log_says_how_to_recover_it(tmp_path):
    profile = capture_that_dies(tmp_path)
    notice = recovery_notice(profile)
    assert notice is not None
    assert f"neuron-profile recover {profile}" in notice
    assert recovery_notice(profile / "profile.json") == notice


def test_a_running_capture_is_not_recovered(tmp_path):
    profile = capture_that_dies(tmp_path)
    lock = LogLock(profile / "log")
    assert "still runs" in (recovery_notice(profile) or "")
    with pytest.raises(RecoveryError, match="being recorded"):
        recover(profile)
    lock.release()
    assert recover(profile).complete


def test_a_profile_without_a_log_has_nothing_to_recover(tmp_path):
    profile = capture_that_dies(tmp_path)
    recover(profile)
    with pytest.raises(RecoveryError, match="nothing to recover"):
        recover(profile)


def test_records_of_another_version_are_left_to_it(tmp_path):
    """An older log tells no version; its records are as long as ours, and would be misread."""
    profile = capture_that_dies(tmp_path)
    tables = everything(profile)
    definitions = profile / "log/process-0000" / FILE_NAME
    definitions.write_text(definitions.read_text().replace(f'"log_version":{LOG_VERSION},', ""))
    with pytest.raises(RecoveryError, match="another version of Neuron Tools: recover it with that version"):
        recover(profile)
    assert everything(profile) == tables


def test_what_is_no_profile_is_not_recovered(tmp_path):
    with pytest.raises(NotAProfileError):
        recover(tmp_path)
    assert recovery_notice(tmp_path / "none") is None


@pytest.mark.parametrize("change", [{"target": None}, {"lnc": 3}, {"settings": None}, {"host_clock": "odd"}])
def test_a_manifest_that_does_not_say_how_it_was_captured(tmp_path, change):
    profile = capture_that_dies(tmp_path)
    facts = json.loads((profile / "profile.json").read_text())
    (profile / "profile.json").write_text(json.dumps({**facts, **change}))
    with pytest.raises(RecoveryError, match="does not say how"):
        recover(profile)
    assert (profile / "log/process-0000").exists()


@pytest.mark.parametrize("command", [7, "train.py", {"a": 1}, None])
def test_a_command_that_is_no_list_is_left_out(tmp_path, command):
    profile = capture_that_dies(tmp_path)
    facts = json.loads((profile / "profile.json").read_text())
    (profile / "profile.json").write_text(json.dumps({**facts, "command": command}))
    assert recover(profile).complete
