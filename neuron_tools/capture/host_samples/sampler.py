"""Samples the Python stacks of this process's threads, and of the children that it forks."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from neuron_tools.capture.host_samples.frame_text import describe_frame
from neuron_tools.capture.untraced import untraced
from neuron_tools.device import native
from neuron_tools.records.host_samples import INTERVAL_NS, SAMPLES_FILE, STACKS_FILE

SWITCH_S = 0.0005
"""How soon the sampler gets Python's lock from a thread that keeps it: a slow line may lose so much."""
SHORTEST_COLLECTION_NS = 100_000


class HostSampler:
    """Writes what all threads of this process do, from `start` to `stop`.

    Nothing here takes a lock: threads are stopped wherever they happen to be, perhaps while they hold one.

    Args:
        directory: The process's log.
        child: Process number, in a forked child; 0 otherwise.

    Raises:
        OSError: The files cannot be made.
    """

    def __init__(self, directory: Path, child: int = 0) -> None:
        self._directory = directory
        self._child = child
        self._files = [_append_to(directory / _named(file, child)) for file in (SAMPLES_FILE, STACKS_FILE)]
        self._main = threading.main_thread().ident or 0
        self._collection_ns = 0
        self._switch_s = sys.getswitchinterval()

    def start(self) -> None:
        """Sample from now on; in a child wherever it is, elsewhere where virtual time passes."""
        global _running
        if _running is not None:
            _running.stop()
        _running = self
        sys.setswitchinterval(min(SWITCH_S, self._switch_s))
        gc.callbacks.append(self._collected)
        untraced(self._collected)
        native.start_sampling(
            untraced(describe_frame), *self._files, main_thread=self._main, interval_ns=INTERVAL_NS,
            always=bool(self._child),
        )  # fmt: skip

    def stop(self) -> None:
        """Sample no longer."""
        global _running
        if _running is not self:
            return
        native.stop_sampling()
        self._let_go()
        _running = None

    def continue_in_child(self) -> None:
        """Leave the parent's files alone, and sample this forked child into files beside them."""
        global _running
        self._let_go()
        _running = None
        with suppress(OSError):
            HostSampler(self._directory, os.getpid()).start()

    def _let_go(self) -> None:
        sys.setswitchinterval(self._switch_s)
        with suppress(ValueError):
            gc.callbacks.remove(self._collected)
        while self._files:
            os.close(self._files.pop())

    def _collected(self, phase: str, details: dict[str, Any]) -> None:
        """Garbage was collected: told by the collector, before and after."""
        now_ns = native.host_now_ns()
        if phase == "start":
            self._collection_ns = now_ns
        elif now_ns - self._collection_ns >= SHORTEST_COLLECTION_NS:
            wall_ns = native.wall_now_ns()
            wall_start_ns = wall_ns - (now_ns - self._collection_ns)
            native.record_collection(self._collection_ns, wall_start_ns, now_ns, wall_ns)


_running: HostSampler | None = None


def _append_to(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)


def _named(file: str, child: int) -> str:
    stem, dot, suffix = file.rpartition(".")
    return f"{stem}-{child}{dot}{suffix}" if child else file


def _after_fork() -> None:
    if _running is not None:
        _running.continue_in_child()


def _at_exit() -> None:
    if _running is not None:
        _running.stop()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
