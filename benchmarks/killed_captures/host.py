"""Starts captures and kills them; has everything loaded, so that a capture costs a fork and no start-up.

`python -m benchmarks.killed_captures.host` reads one JSON object a line (a `Kill`, with its folder and the
number of ticks), and answers {"killed_ns": ...} when nothing of the capture is alive any more.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import tempfile
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

from benchmarks.killed_captures.scenes import NOTES, PROCESSES, SCENES

PR_SET_CHILD_SUBREAPER = 36
FIRST_TICKS = 3
FIRST_MODULES = ("torch._dynamo", "neuron_tools.frontends.torch_compile.backend")
"""Which import others in a circle: begun elsewhere, they cannot be imported."""
LONGEST_S = 180.0
LOOK_S = 0.005


def main() -> None:
    """Answer requests until there are no more."""
    _load()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # to wait for the ranks of a killed capture
    for line in sys.stdin:
        print(json.dumps({"killed_ns": _kill(json.loads(line))}), flush=True)


def _load() -> None:
    """Import what a capture imports, and start nothing: a first one, in a process of its own, says what."""
    with tempfile.TemporaryDirectory() as name:
        modules = Path(name) / "modules"
        if not os.fork():
            with suppress(BaseException):
                SCENES["with profile(...)"].play(Path(name), FIRST_TICKS)
                modules.write_text("\n".join(sys.modules))
            os._exit(0)
        os.wait()
        for module in [*FIRST_MODULES, *modules.read_text().split()]:
            with suppress(ImportError):
                import_module(module)


def _kill(request: dict[str, Any]) -> int:
    """Start a capture, and kill it at its moment.

    Returns:
        The moment, in ns of the monotonic clock; where recorded processes live on, that of their end.
    """
    folder = Path(request["folder"])
    root = _start(request["scene"], folder, request["ticks"])
    if request["begins"] == "first tick":
        _wait_for_first_tick(root, folder)
    time.sleep(request["after_s"])
    killed_ns = time.monotonic_ns()
    _send_kill(root, folder, request["victim"], request["choice"])
    _wait_for_all(root)
    return time.monotonic_ns() if request["victim"] == "capture" else killed_ns


def _start(scene: str, folder: Path, ticks: int) -> int:
    root = os.fork()
    if root:
        return root
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    errors = os.open(folder / "errors", os.O_WRONLY | os.O_CREAT)
    for handle, other in ((0, quiet), (1, quiet), (2, errors)):
        os.dup2(other, handle)
    try:
        SCENES[scene].play(folder, ticks)
        os._exit(0)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]  # there is an exception
        os._exit(1)


def _wait_for_first_tick(root: int, folder: Path) -> None:
    """Wait until every program has made one, or the capture ended."""
    until = time.monotonic() + LONGEST_S
    while time.monotonic() < until and psutil.Process(root).status() != psutil.STATUS_ZOMBIE:
        notes = list(folder.glob(NOTES.format(program="?")))
        if notes and all(each.stat().st_size for each in notes):
            return
        time.sleep(LOOK_S)


def _send_kill(root: int, folder: Path, victim: str, choice: float) -> None:
    told = folder / PROCESSES
    processes = list(map(int, told.read_text().split())) if told.exists() else []
    if victim == "all":
        chosen = [root, *(child.pid for child in psutil.Process(root).children(recursive=True))]
    elif victim == "capture" or not processes:
        chosen = [root]
    else:
        chosen = [processes[int(choice * len(processes))]]
    for process in chosen:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _wait_for_all(root: int) -> None:
    until = time.monotonic() + LONGEST_S
    with suppress(ChildProcessError):
        while True:
            ended, _ = os.waitpid(-1, os.WNOHANG)
            if not ended:
                if time.monotonic() > until:
                    _end_all()
                time.sleep(LOOK_S)


def _end_all() -> None:
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            child.kill()


if __name__ == "__main__":
    main()
