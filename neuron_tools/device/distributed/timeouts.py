"""Lets PyTorch's own function set the timeouts of `neuron` groups: it knows those of NCCL and Gloo alone."""

from __future__ import annotations

from datetime import timedelta
from functools import wraps
from typing import Any

import torch


def let_be_set(backend: str) -> None:
    """Have `_set_pg_timeout`, which TorchTitan and `dist.breakpoint` call, reach a back end's groups.

    Args:
        backend: Its name.
    """
    from torch.distributed import distributed_c10d as c10d

    of_others = c10d._set_pg_timeout

    @wraps(of_others)
    def set_timeout(timeout: timedelta, group: Any = None) -> None:
        asked = c10d._get_default_group() if group is None else group
        if isinstance(asked, torch.distributed.ProcessGroup) and _has(asked, backend):
            asked.set_timeout(timeout)
        else:
            of_others(timeout, group)

    c10d._set_pg_timeout = set_timeout


def _has(group: Any, backend: str) -> bool:
    """Whether some device's tensors are a back end's in a group."""
    return any(group._get_backend(device).name() == backend for device in group._device_types)
