"""Runs foreign SQL in processes of its own (`query_child`), which are kept warm and killed at the deadline.

Inside one call of a function the database hears no interrupt and counts no memory. A process can be ended at
any moment, and the kernel holds its memory.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from io import BufferedReader, RawIOBase
from threading import Lock
from time import monotonic
from typing import Any

import pyarrow as pa

from neuron_tools.frozen import frozen
from neuron_tools.profile.lockdown.bare_environment import bare_environment
from neuron_tools.profile.store.sandbox import TOO_MUCH_MEMORY, QueryError, took_too_long

Interrupting = Callable[[Callable[[], None]], AbstractContextManager[None]]

MOST_IDLE = 3
START_S = 60.0
GRACE_S = 0.5
"""For the database to stop by itself at the deadline, which keeps the process for the next query."""
TRANSFER_S = 120.0
LENGTH_BYTES = 8
LONGEST_WAIT_MS = 2**31 - 1
MOST_ANSWER_BYTES = 1 << 20
MODULE = "neuron_tools.profile.lockdown.query_child"
ALLOCATOR = {"MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"}


@frozen
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


def no_interrupt(stop: Callable[[], None]) -> AbstractContextManager[None]:
    """For queries that nobody cancels."""
    return nullcontext()


@frozen
class Query:
    """A query of somebody else.

    Attributes:
        parameters: Values of `?`, or by name.
        most_rows: At most so many rows; None for all.
        interrupting: Given what stops the query; entered while it runs.
    """

    text: str
    parameters: Any
    timeout_s: float
    most_rows: int | None = None
    interrupting: Interrupting = no_interrupt


def run_query(target: QueryTarget, query: Query) -> pa.Table:
    """The result of a query, computed in a process that may read the profile and nothing else.

    Raises:
        QueryError: It is no single reading statement, is wrong, or took too much time or memory.
    """
    worker = _take(target) or _Worker(target)
    try:
        with query.interrupting(worker.kill):
            result = worker.run(query)
    except QueryError:
        _give_back(worker)
        raise
    except BaseException:
        worker.close()
        raise
    _give_back(worker)
    return result


class _Answers(RawIOBase):
    """What a process writes into a channel, until a deadline.

    Attributes:
        is_late: Whether the deadline passed before all was there.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._until = 0.0
        self._ready = select.poll()
        self._ready.register(channel, select.POLLIN)
        self.is_late = False

    def end_after(self, seconds: float) -> None:
        """Wait at most so long from now on, in all."""
        self._until = monotonic() + seconds

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there, or wait for it; 0 where the process has ended.

        Raises:
            TimeoutError: The deadline has passed.
        """
        left_ms = max(0.0, self._until - monotonic()) * 1e3
        if not self._ready.poll(min(left_ms, LONGEST_WAIT_MS)):
            self.is_late = True
            raise TimeoutError
        return self._channel.recv_into(buffer)


class _Worker:
    """One process; used by one thread at a time."""

    def __init__(self, target: QueryTarget) -> None:
        self.target = target
        self.is_alive = True
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", MODULE, str(theirs.fileno())],
                pass_fds=[theirs.fileno()], cwd="/", env={**bare_environment(), **ALLOCATOR},
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        ours.settimeout(START_S)
        self._channel = ours
        self._answers = _Answers(ours)
        self._stream = BufferedReader(self._answers)
        try:
            self._answers.end_after(START_S)
            self._ask(target.folder, target.range_ns, target.memory_limit)
            self._answer()
        except (OSError, EOFError) as error:
            self.close()
            raise QueryError("The process that runs queries could not be started.") from error
        except QueryError:
            self.close()
            raise

    def run(self, query: Query) -> pa.Table:
        """The result of a query.

        Raises:
            QueryError: See `run_query`.
        """
        try:
            self._answers.end_after(query.timeout_s + GRACE_S)
            self._ask(query.text, query.parameters, query.most_rows, query.timeout_s)
            self._answer()
            self._answers.end_after(TRANSFER_S)
            with pa.ipc.open_stream(self._stream) as reader:
                return reader.read_all()
        except (OSError, EOFError, ValueError, pa.ArrowException) as error:
            self.close()
            sentence = took_too_long(query.timeout_s) if self._answers.is_late else self._death()
            raise QueryError(sentence) from error

    def kill(self) -> None:
        """End the process, also in the middle of a query."""
        with suppress(OSError):
            self._process.kill()

    def close(self) -> None:
        """End the process and wait for it."""
        self.is_alive = False
        self.kill()
        self._stream.close()
        self._channel.close()
        self._process.wait()

    def _ask(self, *request: Any) -> None:
        data = pickle.dumps(request)
        self._channel.sendall(len(data).to_bytes(LENGTH_BYTES, "little") + data)

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


atexit.register(close_idle)
os.register_at_fork(after_in_child=_forget_idle)
