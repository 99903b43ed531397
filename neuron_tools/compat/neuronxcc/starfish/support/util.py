"""`neuronxcc.starfish.support.util`: comparisons of arrays, as tests of kernels make them."""

from neuron_tools.nki.host_arrays import allclose

__nki_names__ = True
__all__ = ["allclose"]
