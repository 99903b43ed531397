"""NumPy's types of Arrow's, without pandas, which some releases import in `DataType.to_pandas_dtype`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def numpy_dtype(kind: pa.DataType) -> np.dtype[Any]:
    """The type that NumPy has for the values of a column.

    Args:
        kind: A type of numbers or of truth values.

    Returns:
        Its counterpart.
    """
    dtype: np.dtype[Any] = pa.array([], kind).to_numpy(zero_copy_only=False).dtype
    return dtype
