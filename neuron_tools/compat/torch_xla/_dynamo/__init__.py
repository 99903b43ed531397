"""`torch_xla._dynamo`: graphs of Dynamo's on the device `xla`."""

from . import config

__all__ = ["config"]
