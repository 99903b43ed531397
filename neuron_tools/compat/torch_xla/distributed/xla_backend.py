"""`torch_xla.distributed.xla_backend`: importing it registers the process group backend `xla`."""

from __future__ import annotations

import torch.distributed as dist

from neuron_tools.device.distributed.registration import register_alias

register_alias("xla")


def ensure_process_group() -> None:
    """Join the job's process group where the program has not done it."""
    if not dist.is_initialized():
        dist.init_process_group("xla", init_method="env://")
