"""`nki`: the present dialect of NKI, destination first."""

from neuron_tools.nki.errors import NkiError
from neuron_tools.nki.kernel import jit
from neuron_tools.nki.missing import missing_name
from neuron_tools.nki.simulation import cpu_simulate, simulate

from . import collectives, compiler, dtype, isa, language, tensor  # isort: skip

__nki_names__ = True
__version__ = "0.6.0"
__all__ = [
    "NkiError", "collectives", "compiler", "cpu_simulate", "dtype", "isa", "jit", "language", "simulate",
    "tensor",
]  # fmt: skip
__getattr__ = missing_name("nki", "nki", globals())
