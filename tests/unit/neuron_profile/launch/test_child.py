import itertools
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from neuron_profile.launch import child
from neuron_profile.launch.child import Ending, LaunchError, run


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def nothing() -> None:
    """A tick that does nothing."""


def nothing_for(seconds: float) -> None:
    """A sleep that takes no time."""


@pytest.mark.parametrize("status", [0, 1, 77])
def test_the_exit_status_is_the_commands(status: int) -> None:
    assert run(python(f"raise SystemExit({status})"), os.environ, nothing) == Ending(status, 0, False, False)


def test_a_killed_command_reports_the_signal_as_a_shell_does() -> None:
    ending = run(python("import os; os.kill(os.getpid(), 9)"), os.environ, nothing)
    assert ending == Ending(137, 9, False, False)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_signals_sent_to_us_reach_the_command(name: str) -> None:
    number = signal.Signals[name]
    code = f"import os, signal; os.kill(os.getppid(), signal.{name}); signal.pause()"
    ending = run(python(code), os.environ, nothing)
    assert ending == Ending(128 + number, number, True, False)


def test_a_command_may_handle_the_signal_and_end_as_it_likes() -> None:
    code = (
        "import os, signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(5));"
        "os.kill(os.getppid(), signal.SIGTERM); signal.pause()"
    )
    assert run(python(code), os.environ, nothing) == Ending(5, 0, True, False)


def test_the_command_has_a_process_group_of_its_own_and_default_signals(tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    code = (
        "import os, signal; open(os.environ['ANSWER'], 'w').write("
        "f'{os.getpgrp() == os.getpid()} {signal.getsignal(signal.SIGTERM) == signal.SIG_DFL}')"
    )
    run(python(code), {**os.environ, "ANSWER": str(answer)}, nothing)
    assert answer.read_text() == "True True"


def test_ticks_come_while_the_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "POLL_SECONDS", 0.01)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = os.open(fifo, os.O_RDWR)
    ticks = []

    def tick() -> None:
        ticks.append(1)
        if len(ticks) == 3:
            os.write(writer, b"go\n")

    ending = run(python(f"open({str(fifo)!r}).readline()"), os.environ, tick)
    os.close(writer)
    assert ending.exit_status == 0
    assert len(ticks) >= 3


def test_processes_that_outlive_the_command_are_noticed(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    waiting = f"open({str(fifo)!r}).read()"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {waiting!r}])"
    ending = run(python(code), os.environ, nothing)
    with fifo.open("w"):
        pass  # lets the process that waits for a writer end
    assert ending == Ending(0, 0, False, True)


def test_a_process_whose_first_thread_alone_has_ended_outlives_the_command(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    waiting = (
        "import ctypes, threading;"
        f"threading.Thread(target=lambda: open({str(fifo)!r}).read()).start();"
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {waiting!r}])"
    ending = run(python(code), os.environ, nothing)
    with fifo.open("w"):
        pass
    assert ending.left_running


def test_processes_that_end_with_the_command_do_not_outlive_it() -> None:
    child_code = "import os; os.read(0, 1)"  # ends when the command, which holds the other end, has ended
    code = (
        "import os, subprocess, sys;"
        f"subprocess.Popen([sys.executable, '-c', {child_code!r}], stdin=subprocess.PIPE);"
        "os._exit(0)"
    )
    assert run(python(code), os.environ, nothing) == Ending(0, 0, False, False)


def test_an_error_in_a_tick_ends_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "POLL_SECONDS", 0.01)

    def tick() -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        run(python("import signal; signal.pause()"), os.environ, tick)


def test_handlers_are_ours_again_afterwards() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]
    run(python(""), os.environ, nothing)
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)] == before


def test_a_command_that_cannot_be_started(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF nonsense")
    broken.chmod(0o755)
    with pytest.raises(LaunchError, match="cannot be started: Exec format error"):
        run([str(broken)], os.environ, nothing)


def test_a_process_that_a_busy_machine_holds_up_may_come_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its processor time counts, and time in which it uses none."""
    seconds = iter([{7: 3.0}, {7: 3.1}, {7: 3.2}, {7: 3.3}, {}])
    clock = iter([0.0, 0.9, 1.8, 2.7])
    monkeypatch.setattr(child, "_used_seconds", lambda group: next(seconds))
    monkeypatch.setattr(child, "time", SimpleNamespace(monotonic=lambda: next(clock), sleep=nothing_for))
    assert not child._outlived(7)


@pytest.mark.parametrize(("step_seconds", "used"), [(0.1, 0.5), (1.1, 0.0), (0.9, 0.01)])
def test_a_process_that_works_on_or_rests_or_takes_long_is_left(
    step_seconds: float, used: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers, steps = itertools.count(), itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(steps) * step_seconds, sleep=nothing_for)
    monkeypatch.setattr(child, "_used_seconds", lambda group: {7: next(numbers) * used})
    monkeypatch.setattr(child, "time", clock)
    assert child._outlived(7)
