"""Embedding bags: rows looked up, then summed, averaged or maximised by bag."""

from __future__ import annotations

from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.combining_scatter import scatter_combine
from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes

_aten = torch.ops.aten
_SUM, _MEAN, _MAXIMUM = range(3)


def _bags(indices: Any, offsets: Any, known: Any = None) -> Any:
    """The bag of each index: how many bags begin at or before it, less one."""
    if known is not None and known.numel() == indices.numel():
        return known
    place = torch.arange(indices.numel()).unsqueeze(1)
    return (offsets.unsqueeze(0) <= place).sum(1, dtype=torch.int64) - 1


def _kept(indices: Any, padding_idx: int, dtype: torch.dtype) -> Any:
    """1 for each index that counts, 0 for padding."""
    return (indices != padding_idx).to(dtype)


@decomposes(_aten._embedding_bag.default, _aten._embedding_bag_forward_only.default)
def _embedding_bag(
    weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = _SUM,
    sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Bags `[bags, width]`, the bag of each index, the size of each bag, and each maximum's index."""
    count = offsets.numel() - (1 if include_last_offset else 0)
    bags = _bags(indices, _aten.slice(offsets, 0, 0, count))
    width = weight.shape[1]
    rows, kept = _aten.embedding(weight, indices), _kept(indices, padding_idx, weight.dtype)
    sizes = torch.zeros(count, dtype=weight.dtype).index_add(0, bags, kept)
    where = torch.zeros([count, width], dtype=torch.int64)
    if mode == _MAXIMUM:
        return _largest(rows, bags, kept, count), bags, sizes.to(offsets.dtype), where
    factor = kept if per_sample_weights is None else kept * per_sample_weights
    total = torch.zeros([count, width], dtype=weight.dtype).index_add(0, bags, rows * factor.unsqueeze(1))
    if mode == _MEAN:
        total = total / torch.clamp(sizes, min=1).unsqueeze(1)
    return total, bags, sizes.to(offsets.dtype), where


def _largest(rows: Any, bags: Any, kept: Any, count: int) -> Any:
    """The largest row elements of each bag; 0 for an empty one."""
    lowest = torch.full([count, rows.shape[1]], -float("inf"), dtype=rows.dtype)
    candidates = torch.where(kept.unsqueeze(1) > 0, rows, -float("inf"))
    places = bags.unsqueeze(1).expand(rows.shape)
    largest = scatter_combine(lowest, 0, places, candidates, "maximum")
    return torch.where(torch.isinf(largest), torch.zeros((), dtype=rows.dtype), largest)


@decomposes(_aten._embedding_bag_backward.default, _aten._embedding_bag_dense_backward.default)
def _embedding_bag_backward(gradient: Any, indices: Any, *arguments: Any) -> Any:
    """Gradient of the table; the two overloads differ in whether they get the offsets and `sparse`."""
    offsets, bags, sizes, largest, rows, by_frequency, mode, weights, padding_idx = _named(arguments)
    table = torch.zeros([rows, gradient.shape[1]], dtype=gradient.dtype)
    if mode == _MAXIMUM:
        return table.scatter_add(0, largest, gradient)
    bags = _bags(indices, offsets, bags) if offsets is not None else bags
    factor = _kept(indices, padding_idx, gradient.dtype)
    if weights is not None:
        factor = factor * weights
    if mode == _MEAN:
        factor = factor / torch.clamp(sizes, min=1)[bags].to(gradient.dtype)
    if by_frequency:
        uses = torch.zeros(rows, dtype=gradient.dtype).index_add(0, indices, torch.ones_like(factor))
        factor = factor / uses[indices]
    return table.index_add(0, indices, gradient[bags] * factor.unsqueeze(1))


def _named(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    with_offsets = len(arguments) >= 9
    offsets = arguments[0] if with_offsets else None
    bags, sizes, largest, rows, by_frequency, mode, *rest = arguments[1:] if with_offsets else arguments
    weights, padding_idx = [*rest[1:], -1][:2] if with_offsets else [*rest, -1][:2]
    return offsets, bags, sizes, largest, rows, by_frequency, mode, weights, padding_idx


@decomposes(_aten._embedding_bag_per_sample_weights_backward.default)
def _embedding_bag_weights_backward(
    gradient: Any, weight: Any, indices: Any, offsets: Any, offset2bag: Any, mode: int, padding_idx: int = -1
) -> Any:
    bags = _bags(indices, offsets, offset2bag)
    products = (gradient[bags] * _aten.embedding(weight, indices)).sum(1)
    return products * _kept(indices, padding_idx, gradient.dtype)
