"""`torch_xla.distributed.spmd`: one program that is partitioned over the cores of its process."""

from . import api, xla_sharding
from .api import *  # noqa: F403  # its `__all__` is part of the package's
from .xla_sharding import *  # noqa: F403  # likewise

__all__ = xla_sharding.__all__ + api.__all__
__getattr__ = xla_sharding.__getattr__
