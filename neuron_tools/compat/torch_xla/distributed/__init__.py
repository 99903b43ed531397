"""`torch_xla.distributed`; the process group backend `xla` is there as soon as `torch_xla` is."""

from . import xla_backend

__all__ = ["xla_backend"]
