"""Which process of the job this is, and how many there are."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import _disable_current_modes

from neuron_tools.device.distributed.registration import register_alias
from neuron_tools.frontends.torch_lowering.meshes import is_tracing_ranks

BACKEND = "xla"
register_alias(BACKEND)


def get_ordinal(defval: int = 0) -> int:
    """The rank of this process; libraries that trace for others put another module at `torch.distributed`."""
    job = torch.distributed
    return job.get_rank() if job.is_initialized() else int(os.environ.get("RANK", defval))


def get_local_ordinal(defval: int = 0) -> int:
    """The rank of this process among those of its machine."""
    return int(os.environ.get("LOCAL_RANK", defval))


def xrt_world_size(defval: int = 1) -> int:
    """Processes of the job."""
    job = torch.distributed
    return job.get_world_size() if job.is_initialized() else int(os.environ.get("WORLD_SIZE", defval))


def is_master_ordinal(local: bool = True) -> bool:
    """Whether this is the first process: of its machine, or of the job."""
    return (get_local_ordinal() if local else get_ordinal()) == 0


def has_others() -> bool:
    """Whether there are other processes; joins their process group where the program has not done it."""
    if _is_alone() or xrt_world_size() == 1:
        return False
    if not torch.distributed.is_initialized() and not is_tracing_ranks():
        with _disable_current_modes():  # the first collective may stand in a model that is traced
            dist.init_process_group(BACKEND, init_method="env://")
    return True


def _is_alone() -> bool:
    """Whether no job started this process and it is in no group, whatever stands for `torch.distributed`.

    A model that is traced for others has them.
    """
    return not is_tracing_ranks() and dist.group.WORLD is None and os.environ.get("WORLD_SIZE", "1") == "1"
