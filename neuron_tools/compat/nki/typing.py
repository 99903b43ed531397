"""`nki.typing`."""

from neuron_tools.nki.older.typing import immutable, mutable, mutable_tensor, scalar, tensor

__nki_names__ = True
__all__ = ["immutable", "mutable", "mutable_tensor", "scalar", "tensor"]
