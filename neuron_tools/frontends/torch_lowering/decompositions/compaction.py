"""Operators whose result's size depends on values, as a chip of fixed shapes does them.

Each element that is kept is counted (a prefix sum over the mask), and goes to the place of its count in a
result of the largest size there can be; the count follows as one more result. The host waits for the count
and takes that many rows. So the time is that of the largest size, whatever the values.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes, replaces

_aten = torch.ops.aten


@replaces(_aten.nonzero.default)
def _nonzero(tensor: Any) -> tuple[Any, Any]:
    """[elements, dimensions]: the places of elements that are not 0; how many there are."""
    mask = (tensor != 0).reshape(-1)
    flat = _compacted(torch.arange(mask.shape[0]), mask)
    return _coordinates(flat, list(tensor.shape)), mask.sum()


@replaces(_aten.masked_select.default)
def _masked_select(tensor: Any, mask: Any) -> tuple[Any, Any]:
    tensor, mask = torch.broadcast_tensors(tensor, mask)
    return _compacted(tensor.reshape(-1), mask.reshape(-1)), mask.sum()


@decomposes(_aten.masked_scatter_backward.default)
def _masked_scatter_backward(gradient: Any, mask: Any, sizes: list[int]) -> Any:
    """The gradient of what was scattered: the masked elements in their order, and none for what was left."""
    gradient, mask = torch.broadcast_tensors(gradient, mask)
    chosen = _compacted(gradient.reshape(-1), mask.reshape(-1))
    count = math.prod(sizes)
    padding = torch.zeros(max(count - chosen.shape[0], 0), dtype=chosen.dtype)
    return torch.cat([chosen[:count], padding]).reshape(sizes)


@replaces(_aten._unique2.default)
def _unique(
    tensor: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Any, ...]:
    values, order = torch.sort(tensor.reshape(-1))
    made, places, counts = _runs(values)
    inverse = torch.zeros_like(places).scatter(0, order, places).reshape(tensor.shape)
    return made, *([inverse] if return_inverse else []), *([counts] if return_counts else [])


@replaces(_aten.unique_consecutive.default)
def _unique_consecutive(
    tensor: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Any, ...]:
    if dim is not None and tensor.dim() > 1:
        raise NotImplementedError("equal slices are not compared")
    made, places, counts = _runs(tensor.reshape(-1))
    inverse = places.reshape(tensor.shape)
    return made, *([inverse] if return_inverse else []), *([counts] if return_counts else [])


@replaces(_aten.bincount.default)
def _counted(tensor: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each number comes; the device reads how far there is to count, and `minlength` says it."""
    if minlength == 0 and tensor.shape[0]:
        raise NotImplementedError("no shape bounds the result")
    if weights is None:
        weights = torch.ones(tensor.shape, dtype=torch.int64)
    elif weights.dtype != torch.float32:
        weights = weights.to(torch.float64)
    return torch.zeros(minlength, dtype=weights.dtype).scatter_add(0, tensor.to(torch.int64), weights)


def _runs(values: Any) -> tuple[Any, Any, Any]:
    """Of runs of equal elements: the element of each, the run of each element, the length of each."""
    if values.shape[0] == 0:
        empty = torch.zeros(0, dtype=torch.int64)
        return values, empty, empty
    begins = torch.cat([torch.ones(1, dtype=torch.bool), values[1:] != values[:-1]])
    places = torch.cumsum(begins.to(torch.int32), 0).to(torch.int64) - 1
    counts = torch.zeros_like(places).scatter_add(0, places, torch.ones_like(places))
    return _compacted(values, begins), places, counts


@decomposes(_aten.index.Tensor)
def _index(tensor: Any, indices: list[Any]) -> Any:
    """Rows where a mask is set, as many as there are; other indices go to torch-mlir as they are."""
    mask, before = _only_mask(indices)
    if mask is None or before:
        return NotImplemented
    rows = tensor.reshape(-1, *tensor.shape[mask.dim() :])
    chosen = _compacted(torch.arange(rows.shape[0]), mask.reshape(-1))
    return torch.index_select(rows, 0, chosen)


@decomposes(_aten.index_put.default, _aten._index_put_impl.default)
def _index_put(
    tensor: Any, indices: list[Any], values: Any, accumulate: bool = False, unsafe: bool = False
) -> Any:
    """Where a mask is set, the value, or that of as many values whose turn it is."""
    mask, before = _only_mask(indices)
    if mask is None:
        return _put_one(tensor, indices, values, accumulate)
    if 0 in values.shape:
        return tensor
    outer, inner = list(range(mask.dim())), tensor.dim() - mask.dim()
    masked = list(range(before, before + mask.dim()))
    moved = tensor.movedim(masked, outer)
    values = values.reshape([1] * (inner + 1 - values.dim()) + list(values.shape)[-inner - 1 :])
    values = values.movedim(before, 0)
    if values.shape[0] == 1:
        values = values.squeeze(0)
    else:
        turn = (torch.cumsum(mask.reshape(-1).to(torch.int32), 0) - 1).clamp(min=0, max=values.shape[0] - 1)
        values = torch.index_select(values, 0, turn).reshape(*mask.shape, *values.shape[1:])
    new = moved + values if accumulate else values.expand(moved.shape)
    chosen = torch.where(mask.reshape([*mask.shape, *[1] * inner]), new.to(tensor.dtype), moved)
    return chosen.movedim(outer, masked)


def _put_one(tensor: Any, indices: list[Any], values: Any, accumulate: bool) -> Any:
    """One element at places without dimensions, of which torch-mlir ends the process; it has all others."""
    if len(indices) < tensor.dim() or any(index is None or index.dim() for index in indices):
        return NotImplemented
    places = [indices[0].reshape(1), *indices[1:]]
    return torch.index_put(tensor, places, values.reshape(1), accumulate)


def _only_mask(indices: list[Any]) -> tuple[Any, int]:
    """The mask that is the only index, None otherwise, and how many dimensions stand before it."""
    places = [place for place, index in enumerate(indices) if index is not None]
    if len(places) != 1 or indices[places[0]].dtype not in (torch.bool, torch.uint8):
        return None, 0
    return indices[places[0]].to(torch.bool), places[0]


def _compacted(values: Any, mask: Any) -> Any:
    """The values where the mask is set, one after the other, then zeros."""
    extent = mask.shape[0]
    places = torch.cumsum(mask.to(torch.int32), 0).to(torch.int64) - 1
    places = torch.where(mask, places, extent)
    return torch.zeros(extent + 1, dtype=values.dtype).scatter(0, places, values)[:extent]


def _coordinates(flat: Any, shape: list[int]) -> Any:
    columns = []
    for extent in reversed(shape):
        columns.append(torch.remainder(flat, extent))
        flat = torch.div(flat, extent, rounding_mode="floor")
    return torch.stack(columns[::-1], 1) if columns else flat.reshape(-1, 0)
