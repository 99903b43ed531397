"""Distributions from uniform and normal numbers."""

from __future__ import annotations

from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes

_aten = torch.ops.aten


@decomposes(_aten.normal.float_float)
def _normal(
    mean: float, std: float, size: Any, *, generator: Any = None, dtype: Any = None, **rest: Any
) -> Any:
    return torch.randn(size, dtype=dtype) * std + mean


@decomposes(_aten.normal.Tensor_float, _aten.normal.Tensor_Tensor)
def _normal_around(mean: Any, std: Any = 1.0, *, generator: Any = None) -> Any:
    return torch.randn(torch.broadcast_shapes(mean.shape, _shape(std)), dtype=mean.dtype) * std + mean


@decomposes(_aten.normal.float_Tensor)
def _normal_scaled(mean: float, std: Any, *, generator: Any = None) -> Any:
    return torch.randn(std.shape, dtype=std.dtype) * std + mean


def _shape(value: Any) -> Any:
    return value.shape if isinstance(value, torch.Tensor) else ()


@decomposes(_aten.log_normal.default)
def _log_normal(tensor: Any, mean: float = 1, std: float = 2, *, generator: Any = None) -> Any:
    return torch.exp(torch.randn(tensor.shape, dtype=tensor.dtype) * std + mean)


@decomposes(_aten.cauchy.default)
def _cauchy(tensor: Any, median: float = 0, sigma: float = 1, *, generator: Any = None) -> Any:
    return median + sigma * torch.tan(torch.pi * (torch.rand(tensor.shape, dtype=tensor.dtype) - 0.5))


@decomposes(_aten.geometric.default)
def _geometric(tensor: Any, p: float, *, generator: Any = None) -> Any:
    uniform = torch.rand(tensor.shape, dtype=torch.float32)
    return torch.ceil(torch.log(uniform) / torch.log1p(torch.tensor(-p))).to(tensor.dtype)


@decomposes(_aten.randint_like.default)
def _integers_like(tensor: Any, high: int, *, dtype: Any = None, **rest: Any) -> Any:
    return _integers(tensor, 0, high, dtype)


@decomposes(_aten.randint_like.low_dtype)
def _integers_between_like(tensor: Any, low: int, high: int, *, dtype: Any = None, **rest: Any) -> Any:
    return _integers(tensor, low, high, dtype)


def _integers(tensor: Any, low: int, high: int, dtype: Any) -> Any:
    uniform = torch.rand(tensor.shape, dtype=torch.float32)
    return torch.floor(uniform * (high - low) + low).to(dtype or tensor.dtype)


@decomposes(_aten.random.default)
def _random(tensor: Any, *, generator: Any = None) -> Any:
    return _integers(tensor, 0, 1 << 24, tensor.dtype)


@decomposes(_aten.random.to)
def _random_below(tensor: Any, to: int, *, generator: Any = None) -> Any:
    return _integers(tensor, 0, to, tensor.dtype)


@decomposes(getattr(_aten.random, "from"))
def _random_between(tensor: Any, low: int, high: Any, *, generator: Any = None) -> Any:
    return _integers(tensor, low, 1 << 24 if high is None else high, tensor.dtype)


@decomposes(_aten.multinomial.default)
def _multinomial(
    probabilities: Any, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Any:
    """Without replacement: the largest of p / Exponential(1) (Efraimidis and Spirakis, 2006)."""
    if not replacement:
        keys = probabilities / -torch.log(torch.rand(probabilities.shape, dtype=probabilities.dtype))
        return torch.topk(keys, num_samples, -1)[1]
    shares = torch.cumsum(probabilities, -1)
    drawn = torch.rand([*probabilities.shape[:-1], num_samples], dtype=shares.dtype) * shares[..., -1:]
    return (shares.unsqueeze(-2) < drawn.unsqueeze(-1)).sum(-1)
