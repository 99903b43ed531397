"""`nki.language.dtypes`: element types."""

from neuron_tools.nki import dtypes as _dtypes
from neuron_tools.nki.missing import missing_name

__nki_names__ = True
globals().update({str(dtype): dtype for dtype in _dtypes.ALL})
__getattr__ = missing_name("nki.language.dtypes", "nki.language.dtypes", globals())
