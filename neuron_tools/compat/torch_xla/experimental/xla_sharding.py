"""`torch_xla.experimental.xla_sharding`: the older place of `torch_xla.distributed.spmd`."""

from ..distributed.spmd import *  # noqa: F403, TID252  # found as torch_xla
from ..distributed.spmd import __all__ as __all__  # noqa: TID252  # likewise
