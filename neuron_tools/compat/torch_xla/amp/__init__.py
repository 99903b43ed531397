"""`torch_xla.amp`: mixed precision on the device."""

from __future__ import annotations

from typing import Any

import torch

from . import syncfree

__all__ = ["autocast", "syncfree"]


class autocast(torch.amp.autocast):
    """Mixed precision in a block.

    Args:
        device: Accepted for compatibility: there is one.
        enabled: Whether it applies.
        dtype: The narrower element type.
        cache_enabled: Keep narrowed weights.
    """

    def __init__(
        self,
        device: Any = None,
        enabled: bool = True,
        dtype: torch.dtype = torch.bfloat16,
        cache_enabled: bool = True,
    ) -> None:
        super().__init__("xla", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)
