"""`nki.compiler`."""

from neuron_tools.nki import compiler_hints as _hints
from neuron_tools.nki.missing import missing_name

__nki_names__ = True
globals().update({name: getattr(_hints, name) for name in _hints.__all__})
__all__ = list(_hints.__all__)
__getattr__ = missing_name("nki.compiler", "ncompiler", globals())
