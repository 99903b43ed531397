"""`XLA_USE_BF16` and `XLA_DOWNCAST_BF16`: the program's float32 tensors are bfloat16 on the device."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache

import torch


@cache
def narrowing() -> Mapping[torch.dtype, torch.dtype]:
    """The device's element type for each that is narrowed; empty without either variable."""
    if _is_set("XLA_USE_BF16"):
        return {torch.float32: torch.bfloat16, torch.float64: torch.bfloat16}
    if _is_set("XLA_DOWNCAST_BF16"):
        return {torch.float32: torch.bfloat16, torch.float64: torch.float32}
    return {}


def on_device(dtype: torch.dtype) -> torch.dtype:
    """The element type that the device has for what the program asked for."""
    return narrowing().get(dtype, dtype)


def in_program(dtype: torch.dtype, sources: Iterable[torch.dtype]) -> torch.dtype:
    """What the program sees of a result.

    Args:
        dtype: Element type on the device.
        sources: Element types, as the program sees them, that went into it.
    """
    if not narrowing() or dtype not in narrowing().values() or dtype in (kinds := set(sources)):
        return dtype
    wide = [source for source, narrow in narrowing().items() if narrow == dtype]
    return next((source for source in wide if source in kinds), wide[0])


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "0").lower() in ("1", "true")
