"""The captured command as a process group of its own: its terminal, its signals and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

import psutil  # type: ignore[import-untyped]  # psutil has no types

from neuron_profile.launch.signals import FORWARDED, STOPS, SignalQueue
from neuron_profile.launch.terminal import Terminal
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen

POLL_SECONDS = 1.0
_ENDING_SECONDS, _LONGEST_ENDING_SECONDS, _ENDING_POLL_SECONDS = 1.0, 10.0, 0.02
"""Python's resource tracker ends just after the processes that it serves, a rank after the one that began."""
SIGNAL_STATUS = 128  # a shell reports a command that a signal ended as 128 + the signal's number


class LaunchError(NeuronToolsError):
    """The command cannot be started."""


@frozen
class Ending:
    """How the command ended.

    Attributes:
        exit_status: 0-255, as a shell reports it.
        signal: Number of the signal that ended it; 0 = it ended by itself.
        interrupted: The user stopped it (Ctrl-C, or a signal sent to the capture).
        left_running: Processes that it started still run.
    """

    exit_status: int
    signal: int
    interrupted: bool
    left_running: bool


def run(command: Sequence[str], environment: Mapping[str, str], tick: Callable[[], None]) -> Ending:
    """Run a command to its end, calling `tick` about once a second while it runs.

    The command has our standard streams and, on a terminal, the foreground, so that Ctrl-C goes to it
    alone. Signals sent to us are passed on to its whole group.

    Raises:
        LaunchError: It cannot be started.
    """
    terminal = Terminal()
    with SignalQueue() as signals:
        process = _start(command, environment, terminal)
        try:
            return _follow(process, signals, terminal, tick)
        except BaseException:
            _signal_group(process.pid, signal.SIGKILL)
            process.wait()
            raise
        finally:
            terminal.take_back()


def _start(
    command: Sequence[str], environment: Mapping[str, str], terminal: Terminal
) -> subprocess.Popen[bytes]:
    def become_group() -> None:
        os.setpgid(0, 0)
        terminal.lend(os.getpid())
        for number in (*FORWARDED, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)

    sys.stdout.flush()
    sys.stderr.flush()
    try:
        return subprocess.Popen(list(command), env=dict(environment), preexec_fn=become_group)
    except OSError as error:
        raise LaunchError(f"The command '{command[0]}' cannot be started: {error.strerror}.") from error


def _follow(
    process: subprocess.Popen[bytes], signals: SignalQueue, terminal: Terminal, tick: Callable[[], None]
) -> Ending:
    interrupted = False
    while process.poll() is None:
        for number in signals.wait(POLL_SECONDS):
            if number == signal.SIGCHLD:
                _follow_suspension(process.pid, terminal)
            else:
                interrupted = interrupted or number in STOPS
                _signal_group(process.pid, number)
        if process.poll() is None:
            tick()
    return _ending(process.returncode, interrupted, left_running=_outlived(process.pid))


def _outlived(group: int) -> bool:
    """Whether processes of a group still run; those that are about to end are given the time.

    That is processor time, for which a busy machine lets them wait, or time in which they use none.
    """
    first = before = _used_seconds(group)
    begun = changed = time.monotonic()
    while used := _used_seconds(group):
        now = time.monotonic()
        if used != before:
            before, changed = used, now
        spent = sum(seconds - first.get(process, 0.0) for process, seconds in used.items())
        if max(spent, now - changed) >= _ENDING_SECONDS or now - begun >= _LONGEST_ENDING_SECONDS:
            return True
        time.sleep(_ENDING_POLL_SECONDS)
    return False


def _used_seconds(group: int) -> dict[int, float]:
    """Processor time of each process of a group that runs.

    One that nobody has waited for yet has ended, unless only its first thread has.
    """
    if not _signal_group(group, 0):
        return {}
    return {
        process.pid: process.info["cpu_times"].user + process.info["cpu_times"].system
        for process in psutil.process_iter(["status", "cpu_times", "num_threads"])
        if process.info["status"] is not None
        and (process.info["status"] != psutil.STATUS_ZOMBIE or (process.info["num_threads"] or 0) > 1)
        and process.info["cpu_times"] is not None
        and _group(process.pid) == group
    }


def _group(process_id: int) -> int:
    try:
        return os.getpgid(process_id)
    except ProcessLookupError:
        return -1


def _ending(return_code: int, interrupted: bool, *, left_running: bool) -> Ending:
    number = max(-return_code, 0)
    status = SIGNAL_STATUS + number if number else return_code
    return Ending(status, number, interrupted or status == SIGNAL_STATUS + signal.SIGINT, left_running)


def _follow_suspension(process_id: int, terminal: Terminal) -> None:
    """Ctrl-Z stops the command: stop with it, so that the shell takes over, and wake it when we wake."""
    try:
        stopped = os.waitid(os.P_PID, process_id, os.WSTOPPED | os.WNOHANG)
    except ChildProcessError:  # it has ended
        return
    if stopped is None:
        return
    terminal.take_back()
    if stopped.si_status in (signal.SIGTSTP, signal.SIGSTOP):
        os.kill(os.getpid(), signal.SIGSTOP)
    terminal.lend(process_id)
    _signal_group(process_id, signal.SIGCONT)


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to every process of a group; False where none is left."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
