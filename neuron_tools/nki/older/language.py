"""What `neuronxcc.nki.language` has beyond the present language."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from neuron_tools.nki import dtypes, operators
from neuron_tools.nki.dtypes import as_dtype
from neuron_tools.nki.index import IndexGrid, arange
from neuron_tools.nki.language import creation, movement
from neuron_tools.nki.language.creation import par_dim
from neuron_tools.nki.language.launch_position import nc, spmd_dim
from neuron_tools.nki.language.movement import atomic_rmw, static_cast
from neuron_tools.nki.language.reduce import all_reduce, loop_reduce


class FloatInfo:
    """Limits of a float type: `min` and `max`."""

    def __init__(self, dtype: Any) -> None:
        import ml_dtypes

        info: Any = ml_dtypes.finfo(as_dtype(dtype).dtype)
        self.min = float(info.min)
        self.max = float(info.max)
        self.eps = float(info.eps)


def finfo(dtype: Any) -> FloatInfo:
    """Limits of a float type."""
    return FloatInfo(dtype)


class _Type(dtypes.DType):
    """A type whose limits are attributes: `nl.fp32.min`."""

    min: float
    max: float


def _with_limits(dtype: dtypes.DType) -> dtypes.DType:
    made = str.__new__(_Type, str(dtype))
    made.__dict__.update(dtype.__dict__)
    info = FloatInfo(dtype)
    made.min, made.max = info.min, info.max
    return made


fp32 = _with_limits(dtypes.float32)
bfp16 = _with_limits(dtypes.bfloat16)
int1 = dtypes.bool_
mgrid = IndexGrid()


def _renamed(function: Callable[..., Any], older: str, present: str) -> Callable[..., Any]:
    """A function whose first argument has another name in the older dialect."""

    @functools.wraps(function)
    def spelled(*arguments: Any, **keywords: Any) -> Any:
        if older in keywords:
            keywords[present] = keywords.pop(older)
        return function(*arguments, **keywords)

    return spelled


copy = _renamed(movement.copy, "src", "x")
broadcast_to = _renamed(movement.broadcast_to, "src", "x")
expand_dims = _renamed(movement.expand_dims, "data", "x")
device_print = _renamed(movement.device_print, "prefix", "print_prefix")
empty_like = _renamed(creation.empty_like, "a", "x")
zeros_like = _renamed(creation.zeros_like, "a", "x")
operators.register(copy, "copy")


def gemm_grid(*_arguments: Any) -> Any:
    """Index expressions of the three tiles of a matmul: (K, M), (K, N), (M, N)."""
    rows, columns, depth = 128, 512, 128
    return mgrid[0:depth, 0:rows], mgrid[0:depth, 0:columns], mgrid[0:rows, 0:columns]


def gemm_stationary_grid(*_arguments: Any) -> Any:
    """Index expressions of a stationary tile."""
    return mgrid[0:128, 0:128]


__all__ = [
    "all_reduce",
    "arange",
    "atomic_rmw",
    "bfp16",
    "broadcast_to",
    "copy",
    "device_print",
    "empty_like",
    "expand_dims",
    "finfo",
    "fp32",
    "gemm_grid",
    "gemm_stationary_grid",
    "int1",
    "loop_reduce",
    "mgrid",
    "nc",
    "par_dim",
    "spmd_dim",
    "static_cast",
    "zeros_like",
]  # fmt: skip
