"""`neuronxcc`: the older dialect of NKI; the compiler itself is not here."""

from neuron_tools.nki.missing import missing_name

__nki_names__ = True
__version__ = "2.21"
__getattr__ = missing_name("neuronxcc", "neuronxcc", globals())
