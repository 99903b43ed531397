"""Which operators are taken apart before torch-mlir sees them, and how.

Starts from torch-mlir's own table (PyTorch's core decompositions), adds what its StableHLO conversion lacks,
and replaces what would cost the device operations that mean nothing (an `addmm` with its factors of one).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch._decomp
from torch._decomp import get_decompositions
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

_aten = torch.ops.aten
_OWN: dict[Any, Callable[..., Any]] = {}

# Single activation functions of the Scalar engine: never spelled out.
_KEPT = (_aten.gelu.default, _aten.erf.default)

_FROM_PYTORCH = (
    _aten.squeeze.dims,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward,
    _aten.embedding_dense_backward,
    _aten.native_batch_norm_backward,
    _aten.native_layer_norm_backward,
    _aten.native_group_norm_backward,
)


def decomposes(*overloads: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a decomposition of our own for operator overloads."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for overload in overloads:
            _OWN[overload] = function
        return function

    return register


@functools.cache
def decomposition_table() -> dict[Any, Callable[..., Any]]:
    """Operator overload -> function of tensors."""
    table: dict[Any, Callable[..., Any]] = dict(get_decomposition_table())
    table.update(get_decompositions(list(_FROM_PYTORCH)))
    table.update(_OWN)
    for overload in _KEPT:
        table.pop(overload, None)
    return table


@functools.cache
def fallback_table() -> dict[Any, Callable[..., Any]]:
    """Decompositions for operators that torch-mlir turned out not to lower: all that PyTorch has."""
    table = dict(torch._decomp.global_decomposition_table["post_autograd"])
    for overload in decomposition_table():
        table.pop(overload, None)
    return table


@decomposes(_aten.addmm.default)
def _matrix_product_added(bias: Any, first: Any, second: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    product = _aten.mm(first, second)
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    return product + (bias if beta == 1 else bias * beta)


@decomposes(_aten.baddbmm.default)
def _batched_product_added(bias: Any, first: Any, second: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    product = _aten.bmm(first, second)
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    return product + (bias if beta == 1 else bias * beta)


@decomposes(_aten.split.Tensor)
def _split(tensor: Any, split_size: int, dim: int = 0) -> list[Any]:
    extent = tensor.shape[dim]
    starts = range(0, max(extent, 1), max(split_size, 1))
    return [_aten.slice(tensor, dim, start, min(start + split_size, extent)) for start in starts]


@decomposes(_aten.split_with_sizes.default)
def _split_with_sizes(tensor: Any, split_sizes: list[int], dim: int = 0) -> list[Any]:
    ends = [sum(split_sizes[: index + 1]) for index in range(len(split_sizes))]
    return [_aten.slice(tensor, dim, end - size, end) for size, end in zip(split_sizes, ends)]


@decomposes(_aten.unbind.int)
def _unbind(tensor: Any, dim: int = 0) -> list[Any]:
    return [_aten.select(tensor, dim, index) for index in range(tensor.shape[dim])]


@decomposes(_aten.slice_scatter.default)
def _slice_scatter(
    tensor: Any, source: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> Any:
    """What stands before the slice, the new values, what stands after.

    torch-mlir's own lowering takes unbounded memory for an open end (2^63 - 1), which is what autograd
    writes.
    """
    extent = tensor.shape[dim]
    first = _position(start or 0, extent)
    last = _position(extent if end is None else end, extent)
    if step != 1:
        positions = torch.arange(first, last, step, device=tensor.device)
        return _aten.index_copy.default(tensor, dim, positions, source)
    before = _aten.slice.Tensor(tensor, dim, 0, first)
    after = _aten.slice.Tensor(tensor, dim, last, extent)
    parts = [part for part in (before, source, after) if part.shape[dim]]
    return _aten.cat.default(parts, dim) if len(parts) > 1 else _aten.clone.default(parts[0])


def _position(index: int, extent: int) -> int:
    """A slice bound in [0, extent]; negative ones count from the end."""
    return min(max(index + extent if index < 0 else index, 0), extent)
