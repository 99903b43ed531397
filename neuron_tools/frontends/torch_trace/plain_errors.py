"""What goes wrong in a traced model reaches its caller as it is, and not inside an error of TorchScript's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

import torch

from neuron_tools.errors import NeuronToolsError
from neuron_tools.frontends.torch_trace.errors import TraceError

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


def _wrong_inputs(
    model: torch.nn.Module, inputs: Sequence[Any], named: Mapping[str, Any]
) -> TraceError | None:
    """What is wrong with the inputs of a traced model; None for another model, or for as many tensors."""
    if not any(name.rpartition(".")[2] == "artifact" for name, _ in model.named_buffers()):
        return None
    _, *taken = model.forward.schema.arguments
    if any(str(argument.type) != "Tensor" for argument in taken):
        return None
    given = [*inputs, *named.values()]
    number = "1 tensor" if len(taken) == 1 else f"{len(taken)} tensors"
    takes = f"The traced model takes {number}, one for each example input"
    wrong = next((value for value in given if not isinstance(value, torch.Tensor)), None)
    if wrong is not None:
        spread = (
            ": pass those in it one by one (`model(*inputs)`)" if isinstance(wrong, (list, tuple)) else ""
        )
        return TraceError(f"{takes}, and got a {type(wrong).__name__}{spread}.")
    if len(given) != len(taken):
        return TraceError(f"{takes}, and got {len(given)}.")
    return None


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
            error = _last.__dict__.pop("error", None) or _wrong_inputs(self, args, kwargs)
            if error is None:
                raise
        raise error.with_traceback(None)

    kind.__call__ = called
