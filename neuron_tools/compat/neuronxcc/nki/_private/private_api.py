"""What published kernels use of `neuronxcc.nki._private.private_api`."""

from neuron_tools.nki.isa.multicore import core_barrier, sendrecv
from neuron_tools.nki.missing import missing_name
from neuron_tools.nki.older.inline_bytes import inline_asm_bytes

__nki_names__ = True
__all__ = ["core_barrier", "inline_asm_bytes", "sendrecv"]
__getattr__ = missing_name("neuronxcc.nki._private.private_api", "private_api", globals())
