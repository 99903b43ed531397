"""`torch_xla.distributed.fsdp`: parameters, gradients and optimizer state shared out over the ranks."""

from .consolidate_sharded_ckpts import (
    consolidate_sharded_model_checkpoints,
    consolidate_sharded_state_dicts,
)
from .fully_sharded import XlaFullyShardedDataParallel
from .utils import checkpoint_module

__all__ = [
    "XlaFullyShardedDataParallel", "checkpoint_module", "consolidate_sharded_model_checkpoints",
    "consolidate_sharded_state_dicts",
]  # fmt: skip
