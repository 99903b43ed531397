"""Fourier transforms as products with small matrices of cosines and sines, between numbers in pairs.

A length that is a product goes in two steps with a turn by twiddle factors between them (Cooley and Tukey
1965); a long prime is a convolution of chirps in the next power of two (Bluestein 1970).
"""

from __future__ import annotations

import math
from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.decompositions.complex_numbers import (
    Pairs,
    conjugate,
    interleaved,
    scaled,
    times,
)
from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes_complex

_aten = torch.ops.aten

LONGEST_PRODUCT = 128
"""Longest transform that is one product: as many rows as the PE array has."""


@decomposes_complex(_aten._fft_c2c.default)
def _complex_to_complex(data: Any, dim: list[int], normalization: int, forward: bool) -> Any:
    factor = _normalization([data.tensor.shape[d % data.rank] for d in dim], normalization)
    for axis in dim:
        data = _along(data, axis % data.rank, forward)
    return scaled(data, factor)


@decomposes_complex(_aten._fft_r2c.default)
def _real_to_complex(data: Any, dim: list[int], normalization: int, onesided: bool) -> Any:
    """The last axis first, of which half is enough; the others as complex numbers."""
    factor = _normalization([data.shape[d] for d in dim], normalization)
    axis, length = dim[-1] % data.dim(), data.shape[dim[-1]]
    kept = length // 2 + 1 if onesided else length
    made = _last(data.transpose(axis, -1), -1.0, kept)
    result = Pairs(made.tensor.transpose(axis, -2))
    for other in dim[:-1]:
        result = _along(result, other % result.rank, True)
    return scaled(result, factor)


@decomposes_complex(_aten._fft_c2r.default)
def _complex_to_real(data: Any, dim: list[int], normalization: int, last_dim_size: int) -> Any:
    """Backwards; the other half of the last axis is the conjugate of the one that is given."""
    factor = _normalization(
        [data.tensor.shape[d % data.rank] for d in dim[:-1]] + [last_dim_size], normalization
    )
    axis, kept = dim[-1] % data.rank, last_dim_size // 2 + 1
    for other in dim[:-1]:
        data = _along(data, other % data.rank, False)
    half = Pairs(data.tensor.transpose(axis, -2).narrow(-2, 0, kept))
    made = (
        _half_to_real(half, last_dim_size)
        if last_dim_size <= LONGEST_PRODUCT
        else _whole(half, last_dim_size)
    )
    return made.transpose(axis, -1) * factor


def _half_to_real(half: Pairs, length: int) -> Any:
    """One product: all but the first element, and a middle one, count for their mates too."""
    kept = half.tensor.shape[-2]
    matrix = _matrix(length, kept, length, 1.0)[..., :, 0]
    alone = torch.remainder(2 * torch.arange(kept), length) == 0
    weighted = matrix * torch.where(alone, 1.0, 2.0).to(matrix.dtype)[:, None, None]
    return torch.matmul(half.tensor.flatten(-2), weighted.flatten(0, 1).to(half.tensor.dtype))


def _whole(half: Pairs, length: int) -> Any:
    ends = half.tensor.narrow(-2, 0, 1), half.tensor.narrow(-2, half.tensor.shape[-2] - 1, 1)
    inner = half.tensor.narrow(-2, 1, (length - 1) // 2)
    real_only = [interleaved(end.select(-1, 0), torch.zeros_like(end.select(-1, 0))).tensor for end in ends]
    middle = real_only[1:] if length % 2 == 0 else []
    mates = conjugate(Pairs(inner.flip(-2))).tensor
    return _last(Pairs(torch.cat([real_only[0], inner, *middle, mates], -2)), 1.0).real


def _normalization(sizes: list[int], kind: int) -> float:
    """What results are multiplied by: nothing, one over the root of the count of elements, or over it."""
    return float(math.prod(sizes) ** (0.0, -0.5, -1.0)[kind])


def _along(data: Pairs, axis: int, forward: bool) -> Pairs:
    moved = Pairs(data.tensor.transpose(axis, -2))
    return Pairs(_last(moved, -1.0 if forward else 1.0).tensor.transpose(axis, -2))


def _last(data: Any, sign: float, kept: int | None = None) -> Pairs:
    """The transform along the last axis of pairs, or of real numbers; its first `kept` elements."""
    length = data.tensor.shape[-2] if isinstance(data, Pairs) else data.shape[-1]
    kept = kept or length
    if length <= LONGEST_PRODUCT:
        return _by_product(data, length, sign, kept)
    inner = _factor(length)
    whole = _in_two_steps(data, length, sign, inner) if inner > 1 else _by_chirps(data, length, sign)
    return Pairs(whole.tensor.narrow(-2, 0, kept))


def _factor(length: int) -> int:
    """The largest divisor that one product does, or else the smallest; 1 of a prime."""
    divisors = [d for d in range(2, math.isqrt(length) + 1) if length % d == 0]
    both = sorted({*divisors, *(length // d for d in divisors)})
    return max((d for d in both if d <= LONGEST_PRODUCT), default=both[0] if both else 1)


def _by_product(data: Any, length: int, sign: float, kept: int) -> Pairs:
    matrix = _matrix(length, length, kept, sign)
    if isinstance(data, Pairs):
        flat, matrix = data.tensor.flatten(-2), matrix.flatten(0, 1)
    else:
        flat, matrix = data, matrix[:, 0]
    product = torch.matmul(flat, matrix.flatten(-2).to(flat.dtype))
    return Pairs(product.unflatten(-1, (kept, 2)))


def _matrix(length: int, rows: int, columns: int, sign: float) -> Any:
    """[rows, 2, columns, 2]: what each part of an element gives to each part of the results."""
    turns = torch.arange(rows).unsqueeze(1) * torch.arange(columns)
    angle = _angle(turns, length, sign)[:, None, :, None]
    part = torch.arange(2)
    quarter = (part - part[:, None, None]).to(torch.float32) * (math.pi / 2)
    return torch.cos(angle - quarter)


def _angle(counts: Any, length: int, sign: float) -> Any:
    """Of so many parts of a turn; `length` is a whole one."""
    return torch.remainder(counts, length).to(torch.float32) * (sign * 2 * math.pi / length)


def _unit(counts: Any, length: int, sign: float, dtype: torch.dtype) -> Pairs:
    """Numbers of size 1 at so many parts of a turn."""
    quarters = torch.arange(2).to(torch.float32) * (math.pi / 2)
    return Pairs(torch.cos(_angle(counts, length, sign).unsqueeze(-1) - quarters).to(dtype))


def _in_two_steps(data: Any, length: int, sign: float, inner: int) -> Pairs:
    """Elements `outer n + m` in, `k + inner l` out: transforms over n, turns by m k, transforms over m."""
    outer = length // inner
    if isinstance(data, Pairs):
        parts: Any = Pairs(data.tensor.unflatten(-2, (inner, outer)).transpose(-2, -3))
    else:
        parts = data.unflatten(-1, (inner, outer)).transpose(-1, -2)
    made = _last(parts, sign)
    turns = _unit(torch.arange(outer).unsqueeze(1) * torch.arange(inner), length, sign, made.tensor.dtype)
    turned = Pairs(times(made, turns).tensor.transpose(-2, -3))
    return Pairs(_last(turned, sign).tensor.transpose(-2, -3).flatten(-3, -2))


def _by_chirps(data: Any, length: int, sign: float) -> Pairs:
    """j k = (j^2 + k^2 - (k - j)^2) / 2: turns by squares before and after a circular convolution."""
    padded = 1 << (2 * length - 2).bit_length()
    counts = torch.arange(length)
    dtype = data.tensor.dtype if isinstance(data, Pairs) else data.dtype
    chirp = _unit(counts * counts, 2 * length, sign, dtype)
    turned = times(data, chirp) if isinstance(data, Pairs) else scaled(chirp, data)
    longer = Pairs(_aten.constant_pad_nd(turned.tensor, [0, 0, 0, padded - length]))
    back = conjugate(chirp).tensor
    gap = torch.zeros([padded - 2 * length + 1, 2], dtype=dtype)
    kernel = Pairs(torch.cat([back, gap, back.narrow(0, 1, length - 1).flip(0)]))
    found = _last(times(_last(longer, -1.0), _last(kernel, -1.0)), 1.0)
    return scaled(times(Pairs(found.tensor.narrow(-2, 0, length)), chirp), 1 / padded)
