"""`neuronxcc.nki.language.constants`: sizes of types."""

from neuron_tools.nki.dtypes import sizeinbytes
from neuron_tools.nki.missing import missing_name

__nki_names__ = True
__all__ = ["sizeinbytes"]
__getattr__ = missing_name("neuronxcc.nki.language.constants", "neuronxcc.nki.language.constants", globals())
