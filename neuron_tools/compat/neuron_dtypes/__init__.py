"""`neuron_dtypes`: NumPy's types for arrays of NKI's element types, and conversions between them."""

from neuron_tools.nki import dtypes as _dtypes
from neuron_tools.nki.dtypes import sizeinbytes
from neuron_tools.nki.host_arrays import PACKED as _PACKED, finfo, is_float_type, static_cast

globals().update({str(dtype): _PACKED.get(str(dtype), dtype.dtype) for dtype in _dtypes.ALL})
__all__ = ["finfo", "is_float_type", "sizeinbytes", "static_cast", *_PACKED]  # noqa: PLE0604  # names of a list
