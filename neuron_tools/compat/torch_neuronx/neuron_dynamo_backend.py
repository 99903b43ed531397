"""`torch_neuronx.neuron_dynamo_backend`: TorchNeuron's names around its back end of `torch.compile`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from neuron_tools.device.api.compile_metrics import get_dynamo_metrics, reset_dynamo_metrics
from neuron_tools.frontends.torch_compile import naming
from neuron_tools.frontends.torch_compile.backend import neuron_backend
from neuron_tools.frontends.torch_compile.naming import set_model_name

__all__ = [
    "create_neuron_backend", "get_dynamo_metrics", "get_model_name", "get_rank", "neuron_backend",
    "reset_dynamo_metrics", "set_model_name",
]  # fmt: skip


def create_neuron_backend() -> Callable[..., Any]:
    """The back end that `torch.compile(backend="neuron")` finds by its name.

    Returns:
        It, to be passed as `backend`.
    """
    return neuron_backend


def get_model_name() -> str:
    """The name that the program gave its model with `set_model_name`, or "model_default"."""
    return naming.model_name() or "model_default"


def get_rank() -> int:
    """Rank of this process: the launcher's `RANK`, or 0."""
    return int(os.environ.get("RANK", "0"))
