"""Scatters that combine, and the operators that address a tensor as if it were flat."""

from __future__ import annotations

from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.combining_scatter import scatter_combine
from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes

_aten = torch.ops.aten

_COMBINERS = {"amax": "maximum", "amin": "minimum", "prod": "multiply", "multiply": "multiply"}


@decomposes(_aten.scatter_reduce.two)
def _scatter_reduce(
    tensor: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    if tensor.dim() == 0:
        result = _scatter_reduce(
            tensor.reshape(1), 0, index.reshape(1), source.reshape(1), reduce, include_self=include_self
        )
        return result.reshape(())
    index_sizes = list(index.shape)
    for axis, extent in enumerate(index_sizes):
        source = _aten.slice(source, axis, 0, extent)
    start = (
        tensor if include_self else _aten.scatter.value(tensor, dim, index, _identity(reduce, tensor.dtype))
    )
    if reduce in ("sum", "add"):
        return _aten.scatter_add(start, dim, index, source)
    if reduce == "mean":
        total = _aten.scatter_add(start, dim, index, source)
        return _divided(total, _counts(tensor, dim, index, include_self))
    return scatter_combine(start, dim, index, source, _COMBINERS[reduce])


@decomposes(_aten.scatter.reduce)
def _scatter_with(tensor: Any, dim: int, index: Any, source: Any, *, reduce: str) -> Any:
    return _scatter_reduce(tensor, dim, index, source, "sum" if reduce == "add" else "prod")


@decomposes(_aten.scatter.value_reduce)
def _scatter_value_with(tensor: Any, dim: int, index: Any, value: Any, *, reduce: str) -> Any:
    source = torch.full(list(index.shape), value, dtype=tensor.dtype)
    return _scatter_reduce(tensor, dim, index, source, "sum" if reduce == "add" else "prod")


@decomposes(_aten.index_reduce.default)
def _index_reduce(
    tensor: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """Whole rows: the index is the same for all elements of one."""
    if source.dim() == 0:
        source = source.reshape(1)
    shape = [1] * source.dim()
    shape[dim] = index.numel()
    rows = index.reshape(shape).expand(source.shape)
    return _scatter_reduce(tensor, dim, rows, source, reduce, include_self=include_self)


def _identity(reduce: str, dtype: torch.dtype) -> Any:
    """What changes nothing when it is combined with a value."""
    if reduce not in ("amax", "amin"):
        return 1 if reduce == "prod" else 0
    largest = float("inf") if dtype.is_floating_point else torch.iinfo(dtype).max
    smallest = -float("inf") if dtype.is_floating_point else torch.iinfo(dtype).min
    return smallest if reduce == "amax" else largest


def _counts(tensor: Any, dim: int, index: Any, include_self: bool) -> Any:
    """How many values each element is the mean of; at least one."""
    counts = torch.full(list(tensor.shape), 1 if include_self else 0, dtype=tensor.dtype)
    ones = torch.ones(list(index.shape), dtype=tensor.dtype)
    return torch.clamp(_aten.scatter_add(counts, dim, index, ones), min=1)


def _divided(total: Any, counts: Any) -> Any:
    if total.dtype.is_floating_point:
        return total / counts
    return torch.div(total, counts, rounding_mode="floor")


def _wrapped(index: Any, extent: int) -> Any:
    """Negative places count from the end."""
    return torch.where(index < 0, index + extent, index)


@decomposes(_aten.take.default)
def _take(tensor: Any, index: Any) -> Any:
    flat = tensor.reshape(-1)
    return torch.index_select(flat, 0, _wrapped(index, flat.shape[0]).reshape(-1)).reshape(index.shape)


@decomposes(_aten.put.default)
def _put(tensor: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    flat, values = tensor.reshape(-1), source.reshape(-1)
    places = _wrapped(index, flat.shape[0]).reshape(-1)
    put = _aten.scatter_add(flat, 0, places, values) if accumulate else _aten.scatter(flat, 0, places, values)
    return put.reshape(tensor.shape)
