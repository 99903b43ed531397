"""Configurations of TorchTitan that cannot train here as they are, changed: a module for `--module`.

`llama3_405b` asks for float8, which TorchTitan refuses on all but CUDA devices of SM89 or later, and for
asynchronous tensor parallelism, which it takes with the compiler alone. Model, sizes and layout are its own.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any
from unittest.mock import patch

REGISTRY = "torchtitan.models.llama3.config_registry"


def llama3_405b_bf16() -> Any:
    """`llama3_405b` without its float8 converter and without asynchronous tensor parallelism.

    The converter refuses other devices while the configuration is made: the model is registered without it.
    """
    registry = import_module(REGISTRY)
    model_registry = registry.model_registry
    with patch.object(registry, "model_registry", lambda name, **_: model_registry(name)):
        config = registry.llama3_405b()
    config.parallelism.enable_async_tensor_parallel = False
    return config
