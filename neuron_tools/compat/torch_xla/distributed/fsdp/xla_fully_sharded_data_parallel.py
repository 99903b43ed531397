"""`torch_xla.distributed.fsdp.xla_fully_sharded_data_parallel`: the module by its longer name."""

from .fully_sharded import XlaFullyShardedDataParallel

__all__ = ["XlaFullyShardedDataParallel"]
