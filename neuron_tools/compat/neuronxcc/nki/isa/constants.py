"""`neuronxcc.nki.isa.constants`: the enumerations of the instruction set."""

from neuron_tools.nki.isa.enums import dge_mode, engine, matmul_perf_mode, nc_version, oob_mode, reduce_cmd
from neuron_tools.nki.missing import missing_name

__nki_names__ = True
__all__ = ["dge_mode", "engine", "matmul_perf_mode", "nc_version", "oob_mode", "reduce_cmd"]
__getattr__ = missing_name("neuronxcc.nki.isa.constants", "neuronxcc.nki.isa.constants", globals())
