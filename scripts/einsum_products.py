"""Sums of products of two arrays in public tests' references, by BLAS where they are matrix products.

`np.einsum` multiplies element by element unless it is told to look for matrix products: of nki-library's MX
kernels the reference took far longer than the simulated kernel. Only the order of the sums differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_TYPES = frozenset({"float32", "float64"})
"""Others NumPy may multiply in one way and refuse in the other, as bfloat16."""


def install() -> None:
    """Let `np.einsum` of two arrays use matrix products in this process."""
    np.einsum = _by_products(np.einsum)


def _by_products(einsum: Callable[..., Any]) -> Callable[..., Any]:
    """`np.einsum`, which looks for matrix products of two operands where the caller does not say."""

    def summed(subscripts: Any, *operands: Any, **options: Any) -> Any:
        if len(operands) == 2 and all(str(getattr(each, "dtype", "")) in _TYPES for each in operands):
            options.setdefault("optimize", True)
        return einsum(subscripts, *operands, **options)

    return summed
