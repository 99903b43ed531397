"""Which process of the job this is, and how many there are."""

from __future__ import annotations

import os

import torch.distributed as dist
from torch.utils._python_dispatch import _disable_current_modes

from neuron_tools.device.distributed.registration import register_alias

BACKEND = "xla"
register_alias(BACKEND)


def get_ordinal(defval: int = 0) -> int:
    """The rank of this process."""
    return dist.get_rank() if dist.is_initialized() else int(os.environ.get("RANK", defval))


def get_local_ordinal(defval: int = 0) -> int:
    """The rank of this process among those of its machine."""
    return int(os.environ.get("LOCAL_RANK", defval))


def xrt_world_size(defval: int = 1) -> int:
    """Processes of the job."""
    return dist.get_world_size() if dist.is_initialized() else int(os.environ.get("WORLD_SIZE", defval))


def is_master_ordinal(local: bool = True) -> bool:
    """Whether this is the first process: of its machine, or of the job."""
    return (get_local_ordinal() if local else get_ordinal()) == 0


def has_others() -> bool:
    """Whether there are other processes; joins their process group where the program has not done it."""
    if xrt_world_size() == 1:
        return False
    if not dist.is_initialized():
        with _disable_current_modes():  # the first collective may stand in a model that is traced
            dist.init_process_group(BACKEND, init_method="env://")
    return True
