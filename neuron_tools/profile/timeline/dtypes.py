"""Types of columns: schemas written as text, and NumPy's types of Arrow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def columns(described: str) -> pa.Schema:
    """The schema of a batch, from text.

    Args:
        described: Name and type of each column, as Arrow names types; "text" is a dictionary of strings.

    Example:
        >>> columns("track int32, name text").names
        ['track', 'name']
    """
    kinds = {"text": pa.dictionary(pa.int32(), pa.string())}
    pairs = (column.split() for column in described.split(","))
    return pa.schema([(name, kinds.get(kind) or pa.type_for_alias(kind)) for name, kind in pairs])


def numpy_dtype(kind: pa.DataType) -> np.dtype[Any]:
    """The NumPy type of a column's values.

    Unlike Arrow's `DataType.to_pandas_dtype`, it needs no pandas, which some releases of Arrow import there.

    Args:
        kind: A type of numbers or of truth values.

    Returns:
        Its counterpart.
    """
    dtype: np.dtype[Any] = pa.array([], kind).to_numpy(zero_copy_only=False).dtype
    return dtype
