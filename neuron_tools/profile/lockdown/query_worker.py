"""Runs foreign SQL in processes of its own (`query_child`), which are kept warm and killed at the deadline.

Inside one call of a function the database hears no interrupt and counts no memory. A process can be ended at
any moment, and the kernel holds its memory.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock, Timer
from typing import Any

import pyarrow as pa

from neuron_tools.profile.sandbox import TOO_MUCH_MEMORY, QueryError, took_too_long

Interrupting = Callable[[Callable[[], None]], AbstractContextManager[None]]

MOST_IDLE = 3
START_S = 60.0
GRACE_S = 0.5
"""For the database to stop by itself at the deadline, which keeps the process for the next query."""
TRANSFER_S = 120.0
LENGTH_BYTES = 8
MOST_ANSWER_BYTES = 1 << 20
MODULE = "neuron_tools.profile.lockdown.query_child"
KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ", "PYTHONHOME")


@dataclass(frozen=True, slots=True)
class QueryTarget:
    """What queries run on.

    Attributes:
        folder: The profile.
        range_ns: The range of a slice.
        memory_limit: As DuckDB spells it.
        stamp: Changes when the profile does.
    """

    folder: str
    range_ns: tuple[int, int] | None
    memory_limit: str
    stamp: tuple[int, int]


def run_query(
    target: QueryTarget,
    query: str,
    parameters: Any,
    timeout_s: float,
    *,
    most_rows: int | None = None,
    interrupting: Interrupting | None = None,
) -> pa.Table:
    """The result of a query, computed in a process that may read the profile and nothing else.

    Args:
        parameters: Values of `?`, or by name.
        most_rows: At most so many rows; None for all.
        interrupting: Given what stops the query; entered while it runs.

    Raises:
        QueryError: It is no single reading statement, is wrong, or took too much time or memory.
    """
    worker = _take(target) or _Worker(target)
    try:
        with (interrupting or no_interrupt)(worker.kill):
            result = worker.run(query, parameters, timeout_s, most_rows)
    except QueryError:
        _give_back(worker)
        raise
    except BaseException:
        worker.close()
        raise
    _give_back(worker)
    return result


def no_interrupt(stop: Callable[[], None]) -> AbstractContextManager[None]:
    """For queries that nobody cancels."""
    return nullcontext()


class _Worker:
    """One process; used by one thread at a time."""

    def __init__(self, target: QueryTarget) -> None:
        self.target = target
        self.is_alive = True
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", MODULE, str(theirs.fileno())],
                pass_fds=[theirs.fileno()], cwd="/", env=_environment(), start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        self._stream = ours.makefile("rwb")
        ours.close()  # the stream keeps it open
        try:
            with self._killed_after(START_S):
                self._ask(target.folder, target.range_ns, target.memory_limit)
                self._answer()
        except (OSError, EOFError) as error:
            self.close()
            raise QueryError("The process that runs queries could not be started.") from error
        except QueryError:
            self.close()
            raise

    def run(self, query: str, parameters: Any, timeout_s: float, most_rows: int | None) -> pa.Table:
        """The result of a query.

        Raises:
            QueryError: See `run_query`.
        """
        try:
            with self._killed_after(timeout_s + GRACE_S) as expired:
                self._ask(query, parameters, most_rows, timeout_s)
                self._answer()
            with self._killed_after(TRANSFER_S), pa.ipc.open_stream(self._stream) as reader:
                return reader.read_all()
        except (OSError, EOFError, ValueError, pa.ArrowException) as error:
            self.close()
            raise QueryError(took_too_long(timeout_s) if expired.is_set() else self._death()) from error

    def kill(self) -> None:
        """End the process, also in the middle of a query."""
        with suppress(OSError):
            self._process.kill()

    def close(self) -> None:
        """End the process and wait for it."""
        self.is_alive = False
        self.kill()
        with suppress(OSError):
            self._stream.close()
        self._process.wait()

    @contextmanager
    def _killed_after(self, seconds: float) -> Iterator[Event]:
        expired = Event()

        def end() -> None:
            expired.set()
            self.kill()

        timer = Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            yield expired
        finally:
            timer.cancel()

    def _ask(self, *request: Any) -> None:
        data = pickle.dumps(request)
        self._stream.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)
        self._stream.flush()

    def _answer(self) -> None:
        """Wait until the process has done what it was asked for.

        Raises:
            QueryError: It tells why it could not.
            EOFError: It ended.
        """
        head = self._stream.read(LENGTH_BYTES)
        size = int.from_bytes(head, "little")
        if len(head) < LENGTH_BYTES or size > MOST_ANSWER_BYTES:
            raise EOFError
        answer = json.loads(self._stream.read(size))
        if answer:
            raise QueryError(str(answer.get("error", ""))[:10_000])

    def _death(self) -> str:
        """Why the process ended, as a sentence."""
        number = -(self._process.returncode or 0)
        if number == signal.SIGXCPU:
            return "The query took more time of the processors than its limit: narrow it, or raise the limit."
        if number in (signal.SIGABRT, signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS):
            return TOO_MUCH_MEMORY
        return "The query ended the process that ran it: narrow it, and please report it."


_lock = Lock()
_idle: list[_Worker] = []


def _take(target: QueryTarget) -> _Worker | None:
    """A process that has the profile open already and has nothing to do."""
    with _lock:
        for worker in reversed(_idle):
            if worker.target == target:
                _idle.remove(worker)
                return worker
    return None


def _give_back(worker: _Worker) -> None:
    if not worker.is_alive or worker._process.poll() is not None:
        worker.close()
        return
    with _lock:
        _idle.append(worker)
        surplus = _idle[:-MOST_IDLE]
        del _idle[:-MOST_IDLE]
    for old in surplus:
        old.close()


def close_idle(folder: str | None = None) -> None:
    """End the processes that wait for queries: those of one profile, or all."""
    with _lock:
        ended = [worker for worker in _idle if folder in (None, worker.target.folder)]
        _idle[:] = [worker for worker in _idle if worker not in ended]
    for worker in ended:
        worker.close()


def _forget_idle() -> None:
    """After a fork the processes belong to the parent."""
    global _lock
    _lock = Lock()
    _idle.clear()


def _environment() -> dict[str, str]:
    """The variables that Python needs; none of the user's secrets."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    packages = [str(Path(__file__).parents[3]), *(path for path in sys.path if path.endswith("-packages"))]
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(packages),
        "MALLOC_ARENA_MAX": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "NEURON_TOOLS_AUTOSTART": "0",
    }


atexit.register(close_idle)
os.register_at_fork(after_in_child=_forget_idle)
