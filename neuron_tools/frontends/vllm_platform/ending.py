"""The end of a server: its engine writes the rest of the profile, and what reads its answers stops in order.

Ctrl-C reaches server and engine, and the server tells the engine once more: vLLM's engine has the default
handlers again by then, and would be killed while it writes. The server closes its sockets before it stops
what reads them, which takes that for the death of the engine and logs an error unless it is quicker.
"""

from __future__ import annotations

import functools
import signal
from collections.abc import Callable
from types import ModuleType
from typing import Any

_READER = "_neuron_reader"


def end_undisturbed(engine: ModuleType) -> None:
    """Let engines that have begun to end not be killed by the next signal; the server kills one that hangs.

    Args:
        engine: vLLM's module of the engine, which puts default handlers back by its name `signal`.
    """
    names = ModuleType(signal.__name__)
    vars(names).update(vars(signal), SIG_DFL=signal.SIG_IGN)
    engine.signal = names  # type: ignore[attr-defined]  # the module of that name that it has imported


def stop_reader_first(server: type[Any], resources: type[Any], cancel: Callable[[Any], None]) -> None:
    """Let servers of a class stop their reader before the sockets of their engine are closed.

    Args:
        server: vLLM's `AsyncLLM`: its `output_handler` is the reader, its `engine_core` has the resources.
        resources: The class of those, whose call closes them.
        cancel: Cancels a task of a loop from any thread.
    """
    if hasattr(server.shutdown, "__wrapped__"):
        return
    server.shutdown, resources.__call__ = (
        _naming_reader(server.shutdown),
        _cancelling(resources.__call__, cancel),
    )


def _naming_reader(shutdown: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(shutdown)
    def named(self: Any, *arguments: Any, **options: Any) -> None:
        resources = getattr(getattr(self, "engine_core", None), "resources", None)  # one that failed to start
        if resources is not None:
            setattr(resources, _READER, getattr(self, "output_handler", None))
        shutdown(self, *arguments, **options)

    return named


def _cancelling(close: Callable[[Any], None], cancel: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(close)
    def closed(self: Any) -> None:
        if (reader := getattr(self, _READER, None)) is not None:
            cancel(reader)
        close(self)

    return closed
