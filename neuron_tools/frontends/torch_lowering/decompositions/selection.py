"""Order statistics through sorting, scans by doubling, and small elementwise functions."""

from __future__ import annotations

from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.decompositions.registry import (
    decomposes,
    decomposes_refused,
    replaces,
)

_aten = torch.ops.aten


@decomposes(_aten.median.dim, _aten.nanmedian.dim)
def _median_along(tensor: Any, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
    return _kth_smallest(tensor, (tensor.shape[dim] + 1) // 2, dim, keepdim)


@decomposes(_aten.median.default, _aten.nanmedian.default)
def _median(tensor: Any) -> Any:
    flat = tensor.reshape(-1)
    return _kth_smallest(flat, (flat.shape[0] + 1) // 2, 0, False)[0]


@decomposes(_aten.kthvalue.default)
def _kth_smallest(tensor: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    values, indices = _aten.sort(tensor, dim)
    value, index = values.select(dim, k - 1), indices.select(dim, k - 1)
    return (value.unsqueeze(dim), index.unsqueeze(dim)) if keepdim else (value, index)


@decomposes_refused(_aten.topk.default)
def _sorted_top(
    tensor: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Any, Any]:
    """In order where any order would do: torch-mlir has no other. In order, the head of a sort."""
    values, indices = (
        torch.sort(tensor, dim, largest) if sorted else torch.topk(tensor, k, dim, largest, True)
    )
    return values.narrow(dim, 0, k), indices.narrow(dim, 0, k)


@decomposes(_aten.cumprod.default)
def _cumulative_product(tensor: Any, dim: int, *, dtype: Any = None) -> Any:
    """log2(n) passes: in each, every element takes in the one `distance` before it."""
    result = tensor if dtype is None else tensor.to(dtype)
    if dtype is None and not result.dtype.is_floating_point and not result.dtype.is_complex:
        result = result.to(torch.int64)
    for distance in _distances(tensor.shape[dim]):
        result = result * _shifted(result, dim, distance, 1)
    return result


@decomposes(_aten.logcumsumexp.default, _aten._logcumsumexp.default)
def _log_cumulative_sum(tensor: Any, dim: int) -> Any:
    largest = tensor.amax(dim, keepdim=True)
    return torch.log(torch.cumsum(torch.exp(tensor - largest), dim)) + largest


@decomposes(_aten.cummax.default)
def _cumulative_maximum(tensor: Any, dim: int) -> tuple[Any, Any]:
    return _cumulative_extreme(tensor, dim, torch.ge)


@decomposes(_aten.cummin.default)
def _cumulative_minimum(tensor: Any, dim: int) -> tuple[Any, Any]:
    return _cumulative_extreme(tensor, dim, torch.le)


@replaces(_aten._cummax_helper.default)
def _cumulative_maximum_into(tensor: Any, values: Any, indices: Any, dim: int) -> tuple[Any, Any]:
    return _cumulative_extreme(tensor, dim, torch.ge)


@replaces(_aten._cummin_helper.default)
def _cumulative_minimum_into(tensor: Any, values: Any, indices: Any, dim: int) -> tuple[Any, Any]:
    return _cumulative_extreme(tensor, dim, torch.le)


def _cumulative_extreme(tensor: Any, dim: int, better: Any) -> tuple[Any, Any]:
    if tensor.dim() == 0:
        return tensor.clone(), torch.zeros((), dtype=torch.int64)
    extent = tensor.shape[dim]
    shape = [1] * tensor.dim()
    shape[dim] = extent
    indices = torch.arange(extent).reshape(shape).expand(tensor.shape)
    values = tensor
    for distance in _distances(extent):
        before, index_before = _held(values, dim, distance), _held(indices, dim, distance)
        stays = better(values, before)
        values = torch.where(stays, values, before)
        indices = torch.where(stays, indices, index_before)
    return values, indices


def _distances(extent: int) -> list[int]:
    distances = [1]
    while distances[-1] * 2 < extent:
        distances.append(distances[-1] * 2)
    return distances if extent > 1 else []


def _shifted(tensor: Any, dim: int, distance: int, fill: int) -> Any:
    """Elements moved up by `distance`, with `fill` before them."""
    extent = tensor.shape[dim]
    kept = _aten.slice(tensor, dim, 0, extent - distance)
    shape = list(tensor.shape)
    shape[dim] = distance
    return torch.cat([torch.full(shape, fill, dtype=tensor.dtype), kept], dim)


def _held(tensor: Any, dim: int, distance: int) -> Any:
    """Elements moved up by `distance`; the first ones stay."""
    extent = tensor.shape[dim]
    first = _aten.slice(tensor, dim, 0, distance)
    return torch.cat([first, _aten.slice(tensor, dim, 0, extent - distance)], dim)


@decomposes(_aten.fmax.default)
def _maximum_ignoring_nan(first: Any, second: Any) -> Any:
    return torch.where(torch.isnan(second) | (first >= second), first, second)


@decomposes(_aten.fmin.default)
def _minimum_ignoring_nan(first: Any, second: Any) -> Any:
    return torch.where(torch.isnan(second) | (first <= second), first, second)


@decomposes(_aten.erfc.default, _aten.special_erfc.default)
def _complementary_error(tensor: Any) -> Any:
    return 1 - torch.erf(tensor)


@decomposes(_aten.hypot.default)
def _hypotenuse(first: Any, second: Any) -> Any:
    return torch.sqrt(first * first + second * second)


@decomposes(_aten._cdist_forward.default)
def _distances_between(first: Any, second: Any, p: float, compute_mode: int | None = None) -> Any:
    difference = torch.abs(first.unsqueeze(-2) - second.unsqueeze(-3))
    if p == 2:
        return torch.sqrt((difference * difference).sum(-1))
    if p == 1:
        return difference.sum(-1)
    if p == float("inf"):
        return difference.amax(-1)
    return (
        torch.pow(torch.pow(difference, p).sum(-1), 1.0 / p)
        if p
        else (difference != 0).to(first.dtype).sum(-1)
    )


@decomposes(_aten.searchsorted.Tensor)
def _search_sorted(
    boundaries: Any, values: Any, *, out_int32: bool = False, right: bool = False, side: Any = None,
    sorter: Any = None,
) -> Any:  # fmt: skip
    """How many boundaries stand before each value."""
    if sorter is not None:
        boundaries = torch.gather(boundaries, -1, sorter)
    edges, wanted = boundaries.unsqueeze(-2), values.unsqueeze(-1)
    before = edges <= wanted if right or side == "right" else edges < wanted
    return before.sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


@decomposes(_aten.lerp.Scalar)
def _interpolate(start: Any, end: Any, weight: Any) -> Any:
    """From whichever end is nearer, as ATen does for accuracy."""
    if abs(weight) < 0.5:
        return start + weight * (end - start)
    return end - (end - start) * (1 - weight)


@decomposes(_aten.sort.stable)
def _stable_sort(
    tensor: Any, *, stable: bool | None = False, dim: int = -1, descending: bool = False
) -> tuple[Any, Any]:
    values, indices = _aten.sort(tensor, dim, descending)
    return values, indices


@decomposes(_aten.histc.default)
def _histogram(tensor: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """Elements in each of `bins` equal intervals; equal bounds stand for the smallest and largest element."""
    values = tensor.reshape(-1).to(torch.float32)
    low, high = (values.amin(), values.amax()) if min == max else (min, max)
    position = torch.clamp(torch.floor((values - low) * bins / (high - low)), max=bins - 1)
    position = torch.where((values >= low) & (values <= high), position, -1.0)
    return (position.unsqueeze(1) == torch.arange(bins)).sum(0).to(tensor.dtype)


@decomposes(_aten._amp_update_scale.default)
def _updated_loss_scale(
    scale: Any, successes: Any, found_inf: Any, growth: float, backoff: float, interval: int
) -> tuple[Any, Any]:
    """What `GradScaler` scales the next loss by, and the steps without overflow since that last changed."""
    overflowed, successes = found_inf > 0, successes + 1
    grows, grown = successes == interval, scale * growth
    kept = torch.where(grows & torch.isfinite(grown), grown, scale)
    return torch.where(overflowed, scale * backoff, kept), torch.where(overflowed | grows, 0, successes)


@replaces(_aten.equal.default)
def _equal(first: Any, second: Any) -> Any:
    if first.shape != second.shape:
        return torch.zeros((), dtype=torch.bool)
    return torch.eq(first, second).all()


@replaces(_aten.detach_.default)
def _detached(tensor: Any) -> Any:
    return tensor.detach()


@decomposes_refused(_aten.reciprocal.default)
def _reciprocal_of_integers(tensor: Any) -> Any:
    return torch.div(torch.ones((), dtype=torch.get_default_dtype()), tensor)


@decomposes_refused(torch.ops.prims.fmod.default)
def _remainder_towards_zero(first: Any, second: Any) -> Any:
    return first - torch.trunc(first / second).to(first.dtype) * second
