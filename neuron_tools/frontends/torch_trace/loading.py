"""Lets traced models be noted when they are loaded or copied: the order decides on their cores."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from neuron_tools.frontends.torch_trace.placement import note_loaded


def install() -> None:
    """Let `torch.jit.load`, and `copy.deepcopy` of a script, note traced models."""
    if getattr(torch.jit.load, "_notes_traced_models", False):
        return
    torch.jit.load = _noting(torch.jit.load)
    script: Any = torch.jit.RecursiveScriptModule
    script.__deepcopy__ = _noting(script.__deepcopy__)


def _noting(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes models, and notes them."""

    @wraps(make)
    def noted(*args: Any, **kwargs: Any) -> Any:
        model = make(*args, **kwargs)
        note_loaded([model])
        return model

    noted._notes_traced_models = True  # type: ignore[attr-defined]  # marks the function
    return noted
