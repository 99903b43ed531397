"""`torch_neuronx.xla_impl.ops`: the older decorator for kernels."""

from ..nki_jit import nki_jit

__all__ = ["nki_jit"]
