"""`neuron-profile capture` of commands that use no torch: streams, exit statuses, signals, bad input."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PYTHON = sys.executable


def one_error_line(text: str) -> str:
    """The only line of standard error, which must be an error."""
    assert text.count("\n") == 1, text
    assert text.startswith("Error: "), text
    return text


def test_streams_and_status_are_the_commands(workplace) -> None:
    workplace.script("echo.py", "import sys\nprint(sys.stdin.read(), sys.argv[1:])\nsys.exit(3)\n")
    answer = workplace.run("capture", "--", PYTHON, "echo.py", "--debug", "-o", "x", input="given")
    assert (answer.returncode, answer.stdout) == (3, "given ['--debug', '-o', 'x']\n")
    assert "Profile: echo.nprof" in answer.stderr
    facts = workplace.info("echo.nprof")
    assert (facts["complete"], facts["interrupted"], facts["exit_status"]) == (True, False, 3)
    assert facts["command"] == f"{PYTHON} echo.py --debug -o x"


def test_profiles_are_counted_up(workplace) -> None:
    workplace.script("plain.py", "")
    for name in ("plain.nprof", "plain-2.nprof"):
        assert f"Profile: {name}" in workplace.capture(PYTHON, "plain.py").stderr
    assert sorted(path.name for path in workplace.folder.glob("*.nprof")) == ["plain-2.nprof", "plain.nprof"]


def test_a_command_killed_by_a_signal_reports_it_as_a_shell_does(workplace) -> None:
    answer = workplace.capture("sh", "-c", "kill -9 $$", options=("-o", "killed.nprof"))
    assert answer.returncode == 137
    assert workplace.info("killed.nprof")["exit_status"] == 137


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_stopping_the_capture_stops_the_command_and_keeps_the_profile(workplace, name: str) -> None:
    number = signal.Signals[name]
    process = workplace.start("capture", "-o", "run.nprof", "--", "sh", "-c", "echo ready; exec sleep 600")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    process.communicate()
    assert process.returncode == 128 + number
    assert workplace.info("run.nprof")["interrupted"] is True


def test_ctrl_c_on_a_terminal_reaches_the_command(workplace) -> None:
    """The terminal sends Ctrl-C to its foreground group: that must be the command's, not ours."""
    workplace.script(
        "wait.py",
        "import os, signal\n"
        "assert os.tcgetpgrp(0) == os.getpgrp()\n"
        "print('ready', flush=True)\n"
        "signal.pause()\n",
    )
    leader, follower = os.openpty()
    process = workplace.start(
        "capture", "--", PYTHON, "wait.py", stdin=follower, start_new_session=True, preexec_fn=take_terminal
    )
    os.close(follower)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.write(leader, b"\x03")
    process.stdout.read()
    assert process.wait() == 130
    os.close(leader)
    assert workplace.info("wait.nprof")["interrupted"] is True


def take_terminal() -> None:
    """In the child: make standard input the controlling terminal."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_a_capture_that_is_killed_leaves_a_profile_that_opens(workplace) -> None:
    process = workplace.start("capture", "-o", "run.nprof", "--", "sh", "-c", "echo ready; cat")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.communicate("")
    assert workplace.info("run.nprof")["complete"] is False
    answer = workplace.run("view", "run.nprof", "--output-format", "summary-text", check=True)
    assert "Incomplete: the recording did not reach its end" in answer.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--"], "No command to capture: write it after --"),
        (["--", PYTHON, "missing.py"], "The script missing.py does not exist."),
        (["--", "no-such-command"], "The command 'no-such-command' was not found"),
        (["-o", "there", "--", PYTHON, "ok.py"], "The output folder there exists: choose another with -o"),
        (["--target", "trn9", "--", PYTHON, "ok.py"], "There is no target 'trn9'; use one of "),
        (["--set", "warp=9", "--", PYTHON, "ok.py"], "Cannot apply the setting 'warp=9'"),
        (["--lnc", "3", "--", PYTHON, "ok.py"], "Invalid value for '--lnc'"),
        (["--host-clock", "sundial", "--", PYTHON, "ok.py"], "Invalid value for '--host-clock'"),
    ],
)
def test_wrong_usage_is_one_sentence_and_leaves_nothing(
    workplace, arguments: list[str], message: str
) -> None:
    workplace.script("ok.py", "")
    (workplace.folder / "there").mkdir()
    answer = workplace.run("capture", *arguments)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert message in one_error_line(answer.stderr)
    assert sorted(path.name for path in workplace.folder.iterdir()) == ["ok.py", "there"]


def test_a_script_that_needs_torch_without_torch(workplace) -> None:
    """A Python that sees the standard library only, as a fresh Debian has it."""
    workplace.script("train.py", "import torch\n")
    bare = workplace.script("python3", f'#!/bin/sh\nexec "{PYTHON}" -I -S "$@"\n')
    bare.chmod(0o755)
    answer = workplace.capture("./python3", "train.py")
    assert answer.returncode == 1
    assert "train.py imports torch, which python3 does not have: install it with" in one_error_line(
        answer.stderr
    )


def test_no_compiler_is_one_sentence(workplace, tmp_path: Path) -> None:
    workplace.script("train.py", "import torch\n")
    environment = {**os.environ, "NEURON_TOOLS_CACHE": str(tmp_path / "cache"), "CXX": "no-such-compiler"}
    answer = workplace.run("capture", "--", PYTHON, "train.py", env=environment)
    assert answer.returncode == 1
    notice, error = answer.stderr.splitlines()
    assert "building the simulated device" in notice
    assert error.startswith("Error: The C++ compiler no-such-compiler")
    assert not list(workplace.folder.glob("*.nprof"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a disk of a given size; skips where that is not allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(size: str) -> Path:
        if shutil.which("mount") is None:
            pytest.skip("there is no mount command")
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True).returncode:
            pytest.skip("mounting is not allowed here")
        return folder

    yield mount
    if folder.is_mount():
        subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_one_sentence_before_the_command_starts(workplace, small_disk) -> None:
    profile = small_disk("1m") / "run.nprof"
    answer = workplace.capture("sh", "-c", "echo started", options=("-o", profile))
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "is full (1 MiB free, a capture needs at least 32 MiB)" in one_error_line(answer.stderr)


def test_a_disk_that_fills_up_does_not_stop_the_command(workplace, small_disk) -> None:
    disk = small_disk("40m")
    fill = f"head -c 60000000 /dev/zero > {disk}/fill 2>/dev/null; echo went on"
    answer = workplace.capture("sh", "-c", fill, options=("-o", disk / "run.nprof"))
    assert (answer.returncode, answer.stdout) == (1, "went on\n")
    errors = [line for line in answer.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    assert "cannot be written (No space left on device)" in errors[0]
    assert workplace.info(disk / "run.nprof")["complete"] is False
