"""Lets `torch.jit.load` note the traced models that it loads: the order decides on their cores."""

from __future__ import annotations

from functools import wraps
from typing import Any

import torch

from neuron_tools.frontends.torch_trace.placement import note_loaded


def install() -> None:
    """Let `torch.jit.load` note traced models."""
    load = torch.jit.load
    if getattr(load, "_notes_traced_models", False):
        return

    @wraps(load)
    def loaded(*args: Any, **kwargs: Any) -> Any:
        model = load(*args, **kwargs)
        note_loaded([model])
        return model

    loaded._notes_traced_models = True  # type: ignore[attr-defined]  # marks the function
    torch.jit.load = loaded
