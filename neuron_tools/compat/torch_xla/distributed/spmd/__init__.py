"""`torch_xla.distributed.spmd`: one program that is partitioned over the cores of its process."""

from . import xla_sharding
from .xla_sharding import *  # noqa: F403  # its `__all__` is the package's

__all__ = xla_sharding.__all__
__getattr__ = xla_sharding.__getattr__
