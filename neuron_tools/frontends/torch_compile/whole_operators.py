"""Keeps operators whole that PyTorch's tracing would take apart into gathers and scatters.

Their own lowerings (`torch_lowering.decompositions.resampling`) know that the indices are regular.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_NAMES = (
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d",
    "upsample_linear1d",
    "upsample_bilinear2d",
    "upsample_trilinear3d",
)
_OVERLOADS = ("vec", "default")
_KEYS = (torch._C.DispatchKey.CompositeImplicitAutograd, torch._C.DispatchKey.Autograd)


@contextmanager
def kept_whole() -> Iterator[None]:
    """Trace within it: PyTorch's decompositions in Python of these operators do not apply, its kernels do."""
    saved = [(overload, dict(overload.py_kernels)) for overload in _overloads()]
    try:
        for overload, kernels in saved:
            _set_kernels(overload, {key: kernel for key, kernel in kernels.items() if key not in _KEYS})
        yield
    finally:
        for overload, kernels in saved:
            _set_kernels(overload, kernels)


def _overloads() -> Iterator[Any]:
    for name in _NAMES:
        operator = getattr(torch.ops.aten, name)
        yield from (
            getattr(operator, overload) for overload in _OVERLOADS if overload in operator.overloads()
        )


def _set_kernels(overload: Any, kernels: dict[Any, Any]) -> None:
    overload.py_kernels.clear()
    overload.py_kernels.update(kernels)
    overload._dispatch_cache.clear()
