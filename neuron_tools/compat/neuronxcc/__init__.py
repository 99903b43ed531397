"""`neuronxcc`: the older dialect of NKI; the compiler itself is not here."""

import logging

from neuron_tools.nki.missing import missing_name

__nki_names__ = True
__version__ = "2.21"
__getattr__ = missing_name("neuronxcc", "neuronxcc", globals())

_OFF = logging.CRITICAL + 10
if not hasattr(logging, "OFF"):  # programs turn the compiler's messages off by `logging.disable(logging.OFF)`
    logging.addLevelName(_OFF, "OFF")
    logging.OFF = _OFF  # type: ignore[attr-defined]  # the compiler adds it to the module
