"""`neuronxcc.nki.language`."""

from neuron_tools.nki import language as _language
from neuron_tools.nki.missing import missing_name
from neuron_tools.nki.older import language as _older

from . import constants  # isort: skip

__nki_names__ = True
globals().update({name: getattr(_language, name) for name in _language.__all__})
globals().update({name: getattr(_older, name) for name in _older.__all__})
__all__ = [*_language.__all__, *_older.__all__, "constants"]  # noqa: PLE0604  # names of a list
__getattr__ = missing_name("neuronxcc.nki.language", "nl", globals())
