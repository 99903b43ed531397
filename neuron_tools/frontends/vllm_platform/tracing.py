"""Functions of the platform that are part of vLLM's compiled graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

Function = TypeVar("Function", bound=Callable[..., Any])

traced: Callable[[Function], Function] = torch._dynamo.dont_skip_tracing
"""Let Dynamo look into a function and what it calls: of neuron-tools it looks into no other."""
