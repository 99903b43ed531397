from pathlib import Path

import pytest

from neuron_tools.capture.log_lock import LogLock
from tests.unit.capture.logs import one_step, write_log
from tests.unit.capture.programs import fused_executable

EXECUTABLES = (fused_executable(7, "eager"), fused_executable(8, "graph"))


@pytest.fixture
def cut_off(make_profile) -> Path:
    """A profile whose capture was killed."""
    profile: Path = make_profile(complete=False)
    write_log(profile / "log/process-0000", one_step(), EXECUTABLES)
    return profile


def test_a_cut_off_profile_is_finished(cut_off, command) -> None:
    answer = command("recover", cut_off)
    assert (answer.status, answer.out) == (0, "")
    assert answer.err == f"Recovered {cut_off}: 3 executions of 1 process.\n"
    assert "Complete" in command("info", cut_off).out
    assert command("verify", cut_off).status == 0


def test_info_and_the_summary_say_how_to_recover(cut_off, command) -> None:
    for arguments in (("info", cut_off), ("view", cut_off, "--output-format", "summary-text")):
        said = " ".join(command(*arguments).out.split())
        assert "The capture was cut off" in said
        assert "neuron-profile recover" in said
        assert said.count("cut off before") == 1


def test_other_output_says_it_on_standard_error(cut_off, command) -> None:
    answer = command("view", cut_off, "--output-format", "summary-json")
    assert answer.err.count("neuron-profile recover") == 1
    assert "recover" not in answer.out


def test_a_running_capture_is_left_alone(cut_off, command) -> None:
    lock = LogLock(cut_off / "log")
    answer = command("recover", cut_off)
    assert "still runs" in " ".join(command("info", cut_off).out.split())
    lock.release()
    assert answer.status == 1
    assert answer.err.startswith("Error: ")
    assert "is being recorded" in answer.err


def test_nothing_to_recover_is_one_sentence(make_profile, command, tmp_path: Path) -> None:
    for path, reason in ((make_profile(), "nothing to recover"), (tmp_path / "none", "is no profile")):
        answer = command("recover", path)
        assert (answer.status, answer.out, answer.err.count("\n")) == (1, "", 1)
        assert reason in answer.err
