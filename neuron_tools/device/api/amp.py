"""Mixed precision under the names of `torch.cuda.amp`: PyTorch's own, with the device already named."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch


class autocast(torch.amp.autocast):
    """`torch.autocast("neuron")`.

    Args:
        enabled: Whether operations are cast inside.
        dtype: What they are cast to.
        cache_enabled: Whether the casts of parameters are kept until the block ends.
    """

    def __init__(
        self, enabled: bool = True, dtype: torch.dtype = torch.bfloat16, cache_enabled: bool = True
    ) -> None:
        super().__init__("neuron", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """`torch.amp.GradScaler("neuron")`; takes the same keyword arguments."""

    def __init__(self, **options: Any) -> None:
        super().__init__("neuron", **options)


custom_fwd = partial(torch.amp.custom_fwd, device_type="neuron")
custom_bwd = partial(torch.amp.custom_bwd, device_type="neuron")
