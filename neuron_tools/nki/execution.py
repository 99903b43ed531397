"""Calls of kernels: compiled and timed once per signature where somebody listens, computed every time."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol, TypeVar

from neuron_tools.nki.returned import UnwrittenWarning
from neuron_tools.nki.run import Run
from neuron_tools.nki.thoroughness import is_thorough
from neuron_tools.nki.tracer import Recording

FRAMEWORKS = "neuron_tools.kernel_frameworks"
"""Entry points named after a framework's module: asked first, once the program has imported it."""
RUNTIMES = "neuron_tools.kernel_runtimes"
"""Entry points that are called before the first kernel runs: a capture begins to listen there."""


class Runnable(Protocol):
    """What is called: a kernel."""

    def run(self, *arguments: Any, recording: Recording = Recording.ALL, **keywords: Any) -> Run:
        """Run it for its values, and for as much of its trace as `recording` asks for."""


Listener = Callable[[Any, tuple[Any, ...], Mapping[str, Any]], Any]
"""`listener(kernel, arguments, keywords)`: what the call returns, or NotImplemented."""
_LISTENERS: list[Listener] = []
"""Asked in turn to execute a call; the first that does not return NotImplemented decides."""
RankListener = Callable[[Any, Callable[[Recording], list[Run]]], list[Run]]
"""`listener(kernel, run)`: executes a call of several ranks, and returns what `run(recording)` computes."""
_RANK_LISTENERS: list[RankListener] = []
"""The first executes calls of several ranks."""
_Listener = TypeVar("_Listener")


def listen(listener: Listener) -> Callable[[], None]:
    """Let `listener(kernel, arguments, keywords)` execute calls; returns a function that ends that."""
    return _listed(_LISTENERS, listener)


def listen_to_ranks(listener: RankListener) -> Callable[[], None]:
    """Let `listener(kernel, run)` execute calls of several ranks; returns a function that ends that."""
    return _listed(_RANK_LISTENERS, listener)


def _listed(listeners: list[_Listener], listener: _Listener) -> Callable[[], None]:
    listeners.insert(0, listener)

    def stop() -> None:
        if listener in listeners:
            listeners.remove(listener)

    return stop


def execute(kernel: Runnable, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """Execute a call: by the framework whose arrays it gets, by a listener, or by computing its values."""
    for framework in _frameworks():
        result = framework(kernel, arguments, keywords)
        if result is not NotImplemented:
            return result
    _start_runtimes()
    for listener in _LISTENERS:
        result = listener(kernel, arguments, keywords)
        if result is not NotImplemented:
            return result
    return compute(kernel, arguments, keywords).outputs


def execute_ranks(kernel: Runnable, run: Callable[[Recording], list[Run]], recording: Recording) -> list[Run]:
    """Execute a call of several ranks: by who listens, or by computing its values.

    Args:
        kernel: What the ranks run.
        run: Computes the call on all ranks, and keeps what it is asked to.
        recording: What of the runs to keep.
    """
    _start_runtimes()
    for listener in _RANK_LISTENERS:
        return listener(kernel, run)
    return run(recording)


def _frameworks() -> Iterator[Listener]:
    """What executes calls with arrays of the frameworks that the program has imported."""
    for name, entry in _framework_entries():
        if name in sys.modules:
            yield _loaded(entry)


@lru_cache(maxsize=1)
def _framework_entries() -> tuple[tuple[str, EntryPoint], ...]:
    return tuple((entry.name, entry) for entry in entry_points(group=FRAMEWORKS))


@lru_cache(maxsize=8)
def _loaded(entry: EntryPoint) -> Listener:
    listener: Listener = entry.load()
    return listener


@lru_cache(maxsize=1)
def _start_runtimes() -> None:
    for entry in entry_points(group=RUNTIMES):
        entry.load()()


def compute(kernel: Runnable, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Run:
    """Run a kernel for its values, and check what only the whole run shows.

    `NKI_CHECKS=fast` leaves out the latter: capacity, the cores' races, and tiles placed over one another.

    Raises:
        NkiError: The kernel breaks a rule; the text names its line.

    Warns:
        UnwrittenWarning: It reads a tile of which nothing has written a part.
    """
    from neuron_tools.nki.capacity import check_capacity
    from neuron_tools.nki.lowering.placement_check import check_placed

    if not is_thorough():
        return kernel.run(*arguments, recording=Recording.NOTHING, **keywords)
    done = kernel.run(*arguments, recording=Recording.CALLS, **keywords)
    for text in dict.fromkeys(text for trace in done.traces for text in trace.warnings):
        warnings.warn(text, UnwrittenWarning, stacklevel=2)
    for trace in done.traces:
        check_placed(trace)
        check_capacity(trace)
    return done
