"""`nki.tensor`: arrays known while tracing, for `nl.shared_constant`."""

from typing import Any as _Any

import numpy as _numpy

from neuron_tools.nki.dtypes import as_dtype as _as_dtype, float32 as _float32

__nki_names__ = True


def zeros(shape: _Any, dtype: _Any = _float32) -> _Any:
    """An array of zeros."""
    return _numpy.zeros(shape, _as_dtype(dtype).dtype)


def ones(shape: _Any, dtype: _Any = _float32) -> _Any:
    """An array of ones."""
    return _numpy.ones(shape, _as_dtype(dtype).dtype)


def identity(n: _Any, dtype: _Any = _float32) -> _Any:
    """The n x n identity."""
    return _numpy.eye(n, dtype=_as_dtype(dtype).dtype)


def arange(*bounds: int, dtype: _Any = _float32) -> _Any:
    """Consecutive numbers."""
    return _numpy.arange(*bounds).astype(_as_dtype(dtype).dtype)
