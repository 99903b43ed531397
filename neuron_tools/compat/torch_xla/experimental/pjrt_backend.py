"""`torch_xla.experimental.pjrt_backend`: importing it registers the process group backend `xla`."""

from ..distributed import xla_backend  # noqa: F401, TID252  # found as torch_xla; the import is what counts
