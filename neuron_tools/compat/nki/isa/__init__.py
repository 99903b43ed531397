"""`nki.isa`."""

from neuron_tools.nki import isa as _isa
from neuron_tools.nki.missing import missing_name

from . import constants  # isort: skip

__nki_names__ = True
globals().update({name: getattr(_isa, name) for name in _isa.__all__})
__all__ = [*_isa.__all__, "constants"]  # noqa: PLE0604  # names of a list
__getattr__ = missing_name("nki.isa", "nisa", globals())
