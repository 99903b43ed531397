"""`torch_xla.debug.profiler`: named ranges; `neuron-profile capture` records them and the rest."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, TypeVar, cast

import torch
from torch.autograd.profiler import record_function

from ..core import xla_model as xm  # noqa: TID252  # found as torch_xla

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Trace(record_function):
    """A named range of the program."""

    def __init__(self, name: str, **arguments: Any) -> None:
        super().__init__(name)


class StepTrace(Trace):
    """A named range that is a step: what was recorded runs at its end."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        xm.mark_step()
        super().__exit__(kind, error, trace)


def trace_me(scope: str) -> Callable[[_Function], _Function]:
    """A decorator: each call of the function is a named range.

    Args:
        scope: The name.
    """

    def decorated(function: _Function) -> _Function:
        @wraps(function)
        def traced(*args: Any, **kwargs: Any) -> Any:
            with Trace(scope):
                return function(*args, **kwargs)

        return cast("_Function", traced)

    return decorated


def start_server(port: int, only_on_master: bool = True) -> object:
    """Accepted for compatibility; there is nothing to connect to."""
    return object()


def trace(service_addr: str, logdir: str, duration_ms: int = 1000, **options: Any) -> None:
    """Accepted for compatibility."""


def trace_detached(service_addr: str, logdir: str, duration_ms: int = 1000, **options: Any) -> None:
    """Accepted for compatibility."""


def start_trace(log_dir: str, **options: Any) -> None:
    """Accepted for compatibility: `neuron-profile capture` records the whole program."""


def stop_trace() -> None:
    """Accepted for compatibility."""
    torch.neuron.synchronize()
