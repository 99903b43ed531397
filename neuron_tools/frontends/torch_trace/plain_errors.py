"""What goes wrong in a traced model reaches its caller as it is, and not inside an error of TorchScript's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch

from neuron_tools.errors import NeuronToolsError

Function = TypeVar("Function", bound=Callable[..., Any])
_last = threading.local()


def keeps_errors(function: Function) -> Function:
    """Let an operator's own errors be known to the call of the module that is behind it."""

    @wraps(function)
    def kept(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except NeuronToolsError as error:
            _last.error = error
            raise

    return kept  # type: ignore[return-value]  # the same parameters and result


def install() -> None:
    """Let calls of TorchScript modules raise the error that an operator of ours raised in them."""
    kind = torch.jit.ScriptModule
    if "__call__" in vars(kind):
        return
    call = kind.__call__

    @wraps(call)
    def called(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        try:
            return call(self, *args, **kwargs)
        except RuntimeError:
            error = _last.__dict__.pop("error", None)
            if error is None:
                raise
        raise error.with_traceback(None)

    kind.__call__ = called
