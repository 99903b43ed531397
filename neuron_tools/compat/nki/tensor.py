"""`nki.tensor`: arrays known while tracing, for `nl.shared_constant`."""

import numpy as _numpy

from neuron_tools.nki.dtypes import as_dtype as _as_dtype
from neuron_tools.nki.dtypes import float32 as _float32

__nki_names__ = True


def zeros(shape, dtype=_float32):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """An array of zeros."""
    return _numpy.zeros(shape, _as_dtype(dtype).dtype)


def ones(shape, dtype=_float32):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """An array of ones."""
    return _numpy.ones(shape, _as_dtype(dtype).dtype)


def identity(n, dtype=_float32):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """The n x n identity."""
    return _numpy.eye(n, dtype=_as_dtype(dtype).dtype)


def arange(*bounds, dtype=_float32):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN002, ANN201
    """Consecutive numbers."""
    return _numpy.arange(*bounds).astype(_as_dtype(dtype).dtype)
