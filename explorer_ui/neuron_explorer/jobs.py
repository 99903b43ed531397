"""Work that takes longer than an answer may: it runs in a thread, tells how far it is, and can be cancelled.

Cancelling is cooperative. An analysis reads its profile through a `WatchedProfile`, which stops it at its
next query and interrupts the one that runs.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import pyarrow as pa

from neuron_tools.errors import NeuronToolsError
from neuron_tools.profile.lockdown.query_worker import Interrupting
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.store import sandbox
from neuron_tools.profile.store.kept_results import Kept

STOP_AGAIN_S = 0.02
BACKGROUND_NICENESS = 10


class CancelledError(NeuronToolsError):
    """The user stopped the work."""


@dataclass
class Progress:
    """How far a job is; written by the job, read by everyone.

    Attributes:
        text: What it does now.
        fraction: 0 to 1; None where the end is not known.
        patience_s: How long it goes on when nobody asks for it any more; None for as long as it takes.
    """

    text: str = ""
    fraction: float | None = None
    started_s: float = field(default_factory=monotonic)
    patience_s: float | None = None
    _asked_s: float = field(default_factory=monotonic, repr=False)
    _cancel: threading.Event = field(default_factory=threading.Event, repr=False)
    _on_cancel: list[Callable[[], None]] = field(default_factory=list, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the job began."""
        return monotonic() - self.started_s

    @property
    def is_cancelled(self) -> bool:
        """Whether the user stopped the job."""
        return self._cancel.is_set()

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody has asked for the job for too long."""
        return self.patience_s is not None and monotonic() - self._asked_s > self.patience_s

    def ask(self) -> None:
        """Tell that somebody waits for the job."""
        self._asked_s = monotonic()

    def check(self) -> None:
        """Go on, or stop.

        Raises:
            CancelledError: The user stopped the job, or waits for it no more.
        """
        if self.is_cancelled or self.is_abandoned:
            raise CancelledError("The work was cancelled.")

    def pause(self, seconds: float) -> None:
        """Do nothing for a while.

        Raises:
            CancelledError: The user stopped the job meanwhile.
        """
        if seconds > 0:
            self._cancel.wait(seconds)
            self.check()

    def cancel(self) -> None:
        """Stop the job at the next point where it can be."""
        self._cancel.set()
        with self._lock:
            for stop in self._on_cancel:
                stop()

    @contextmanager
    def interrupting(self, stop: Callable[[], None]) -> Iterator[None]:
        """While this is entered, cancelling calls `stop`; afterwards it never does."""
        with self._lock:
            self._on_cancel.append(stop)
        try:
            yield
        finally:
            with self._lock:
                self._on_cancel.remove(stop)


@contextmanager
def in_background() -> Iterator[None]:
    """Let a thread work when nothing else does, where the system can be told so."""
    if sys.platform != "linux":
        yield
        return
    thread = threading.get_native_id()
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, thread, BACKGROUND_NICENESS)
    yield  # a thread cannot raise its priority again: it is a job's own, and ends with it


class Job:
    """A function that runs in a thread of its own.

    Attributes:
        progress: How far it is.
        error: What it raised; None while it runs and where it ended well.
        result: What it returned.
    """

    def __init__(self, function: Callable[[Progress], Any], name: str) -> None:
        self.progress = Progress()
        self.error: Exception | None = None
        self.result: Any = None
        self._done = threading.Event()
        self._function = function
        self._thread = threading.Thread(target=self._run, name=f"explorer {name}", daemon=True)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._done.is_set()

    @property
    def was_abandoned(self) -> bool:
        """Whether it stopped because nobody asked for it, not because the user cancelled it."""
        return isinstance(self.error, CancelledError) and not self.progress.is_cancelled

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end, at most so long; whether it has come."""
        return self._done.wait(timeout_s)

    def stop(self, timeout_s: float) -> bool:
        """Cancel the job and wait for its end, at most so long; whether it has come.

        It is told again and again: a query that has not quite begun does not hear it.
        """
        until = monotonic() + timeout_s
        self.progress.cancel()
        while not self.wait(STOP_AGAIN_S) and monotonic() < until:
            self.progress.cancel()
        return self.is_done

    def _run(self) -> None:
        try:
            self.result = self._function(self.progress)
        except Exception as error:
            self.error = error
        finally:
            self._done.set()


class WatchedProfile(Profile):
    """A view of an open profile through which a job reads it, and is stopped."""

    def __init__(self, profile: Profile, progress: Progress) -> None:
        self._inner = profile
        self._progress = progress

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _cursor(self, query: str) -> Any:
        return self._inner._cursor(query)

    def kept(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """As `Profile.kept`, of the profile itself."""
        return self._inner.kept(key, make)

    def known(self, key: Hashable) -> Any:
        """As `Profile.known`, of the profile itself."""
        return self._inner.known(key)

    @property
    def timeline_index(self) -> Any:
        """The index of the profile itself."""
        return self._inner.timeline_index

    def close(self) -> None:
        """The profile itself stays open."""

    def query(
        self,
        query: str,
        parameters: Sequence[Any] | Mapping[str, Any] = (),
        *,
        timeout_s: float | None = None,
    ) -> pa.Table:
        """As `Profile.query`.

        Raises:
            CancelledError: The job was cancelled before or while the query ran.
        """
        given = dict(parameters) if isinstance(parameters, Mapping) else list(parameters)
        limit_s = sandbox.DEFAULT_TIMEOUT_S if timeout_s is None else timeout_s
        return self._read(query, limit_s, lambda cursor: cursor.sql(query, params=given or None))

    def first_rows(
        self, query: str, most: int, timeout_s: float, *, interrupting: Interrupting | None = None
    ) -> pa.Table:
        """As `Profile.first_rows`.

        Raises:
            QueryError, CancelledError: As `query`.
        """
        self._progress.check()
        try:
            stop = interrupting or self._progress.interrupting
            return self._inner.first_rows(query, most, timeout_s, interrupting=stop)
        except sandbox.QueryError:
            self._progress.check()
            raise

    def _read(self, query: str, limit_s: float, relation: Callable[[Any], Any]) -> pa.Table:
        self._progress.check()
        sandbox.check_query(query)
        with self._inner._lent_cursor(query) as cursor, self._progress.interrupting(cursor.interrupt):
            self._progress.check()
            try:
                with sandbox.bounded(cursor, limit_s):
                    return relation(cursor).to_arrow_table()
            except sandbox.QueryError:
                self._progress.check()
                raise
