"""`neuronxcc.nki.isa`."""

from neuron_tools.nki.missing import missing_name
from neuron_tools.nki.older import isa as _isa

from . import constants  # isort: skip

__nki_names__ = True
globals().update({name: getattr(_isa, name) for name in _isa.NAMES})
__all__ = [*_isa.NAMES, "constants"]  # noqa: PLE0604  # names of a list
__getattr__ = missing_name("neuronxcc.nki.isa", "nisa", globals())
