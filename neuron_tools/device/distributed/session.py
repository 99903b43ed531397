"""Virtual time of this process as its collectives see it: installed by whoever keeps it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore

Define = Callable[[Mapping[str, Any]], int]
"""(what a collective is) -> its number in the log's definitions."""


@frozen
class TimedSession:
    """What times collectives of this process.

    Attributes:
        core: The NeuronCore that is simulated.
        start_unix_ns: Unix time of this process's virtual time 0; 0 under the fixed clock.
        define: Gives a collective's description its number in the log; None where no log is written.
        simulated_ranks: Ranks of the job that is simulated; 0: those that run.
    """

    core: NeuronCore
    start_unix_ns: int = 0
    define: Define | None = None
    simulated_ranks: int = 0


_current: TimedSession | None = None
_count = 0


def current() -> TimedSession | None:
    """The session under way."""
    return _current


def number() -> int:
    """Which session of this process the last one was: virtual time begins anew with each."""
    return _count


def install(session: TimedSession) -> Callable[[], None]:
    """Let collectives take time; returns what ends it."""
    global _current, _count
    _current = session
    _count += 1
    return _uninstall


def _uninstall() -> None:
    global _current
    _current = None
