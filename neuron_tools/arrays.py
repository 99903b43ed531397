"""Types of NumPy arrays, by what their elements are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]
Mask = Bools
"""Which elements of another array are meant."""
Table = npt.NDArray[np.void]
"""Rows of a structured type, whose columns have names."""
