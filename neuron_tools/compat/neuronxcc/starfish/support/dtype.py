"""`neuronxcc.starfish.support.dtype`: element types that NumPy lacks."""

from neuron_tools.nki.dtypes import bfloat16, float8_e4m3, float8_e5m2
from neuron_tools.nki.host_arrays import static_cast

__nki_names__ = True
float8e4, float8e5 = float8_e4m3, float8_e5m2
__all__ = ["bfloat16", "float8_e4m3", "float8_e5m2", "float8e4", "float8e5", "static_cast"]
