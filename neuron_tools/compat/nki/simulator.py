"""`nki.simulator`: kernels on the host, for their values."""

from neuron_tools.nki.missing import missing_name
from neuron_tools.nki.simulation import simulate

__nki_names__ = True
__all__ = ["simulate"]
__getattr__ = missing_name("nki.simulator", "nki.simulator", globals())
