"""Sums of products of two arrays in public tests' references, by BLAS where they are matrix products.

`np.einsum` multiplies element by element unless it is told to look for matrix products: of nki-library's MX
kernels the reference took far longer than the simulated kernel. Only the order of the sums differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def install() -> None:
    """Let `np.einsum` of two arrays use matrix products in this process."""
    np.einsum = _by_products(np.einsum)


def _by_products(einsum: Callable[..., Any]) -> Callable[..., Any]:
    """`np.einsum`, which looks for matrix products of two operands where the caller does not say."""

    def summed(subscripts: Any, *operands: Any, **options: Any) -> Any:
        if isinstance(subscripts, str) and len(operands) == 2:
            options.setdefault("optimize", True)
        return einsum(subscripts, *operands, **options)

    return summed
