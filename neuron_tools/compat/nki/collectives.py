"""`nki.collectives`."""

from neuron_tools.nki import collectives as _collectives
from neuron_tools.nki.missing import missing_name

__nki_names__ = True
globals().update({name: getattr(_collectives, name) for name in _collectives.__all__})
__all__ = list(_collectives.__all__)
__getattr__ = missing_name("nki.collectives", "ncc", globals())
