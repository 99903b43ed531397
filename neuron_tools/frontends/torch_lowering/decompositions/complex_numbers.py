"""Arithmetic and views of complex tensors, written for real numbers in pairs along a last axis of two.

Products turn pairs round instead of taking them apart: a row that is put together from its own columns is one
access pattern on chip, parts that are taken apart and joined again are copies of single numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes_complex

_aten = torch.ops.aten


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """A complex tensor: `tensor` is [..., 2], real and imaginary part."""

    tensor: Any

    @property
    def rank(self) -> int:
        """Dimensions of the complex tensor."""
        return int(self.tensor.dim()) - 1

    @property
    def real(self) -> Any:
        """Of its own rank."""
        return self.tensor.select(-1, 0)

    @property
    def imaginary(self) -> Any:
        """Of its own rank."""
        return self.tensor.select(-1, 1)


def interleaved(real: Any, imaginary: Any) -> Pairs:
    """The complex tensor of these parts."""
    real, imaginary = torch.broadcast_tensors(real, imaginary)
    is_real = torch.arange(2) == 0
    # Each part twice: a choice between two equal parts is taken for one of them, whatever its shape.
    both = [part.unsqueeze(-1).expand(*part.shape, 2) for part in (real, imaginary)]
    return Pairs(torch.where(is_real, *both))


def _columns(tensor: Any) -> tuple[Any, Any]:
    return tensor.narrow(-1, 0, 1), tensor.narrow(-1, 1, 1)


def times(first: Pairs, second: Pairs) -> Pairs:
    """a b = a Re b + i a Im b."""
    real, imaginary = _columns(second.tensor)
    real, imaginary = torch.cat([real, real], -1), torch.cat([imaginary, imaginary], -1)
    return Pairs(first.tensor * real + _turned(first.tensor) * imaginary)


def _turned(tensor: Any) -> Any:
    """i times the pairs."""
    real, imaginary = _columns(tensor)
    return torch.cat([-imaginary, real], -1)


def conjugate(data: Pairs) -> Pairs:
    """The complex conjugate."""
    real, imaginary = _columns(data.tensor)
    return Pairs(torch.cat([real, -imaginary], -1))


def scaled(data: Pairs, factor: Any) -> Pairs:
    """Times a real tensor or a number."""
    if isinstance(factor, complex):
        return Pairs(data.tensor * factor.real + _turned(data.tensor) * factor.imag)
    return Pairs(data.tensor * (factor.unsqueeze(-1) if isinstance(factor, torch.Tensor) else factor))


@decomposes_complex(_aten.mul.Tensor, _aten.mul.Scalar)
def _product(first: Any, second: Any) -> Any:
    if not isinstance(first, Pairs):
        first, second = second, first
    if isinstance(first, Pairs):
        return times(first, second) if isinstance(second, Pairs) else scaled(first, second)
    return interleaved(second * first.real, second * first.imag)


@decomposes_complex(_aten.div.Tensor, _aten.div.Scalar)
def _quotient(first: Any, second: Any) -> Any:
    if not isinstance(first, Pairs) or isinstance(second, (Pairs, complex)):
        return NotImplemented
    return Pairs(first.tensor / (second.unsqueeze(-1) if isinstance(second, torch.Tensor) else second))


@decomposes_complex(_aten.pow.Tensor_Scalar)
def _power(base: Any, exponent: Any) -> Any:
    """Small whole powers are products."""
    if not isinstance(base, Pairs) or exponent not in range(1, 9):
        return NotImplemented
    result = base
    for _ in range(int(exponent) - 1):
        result = times(result, base)
    return result


def _linear(overload: Any) -> None:
    def rule(first: Any, second: Any, *, alpha: Any = 1) -> Any:
        if not isinstance(first, Pairs) or not isinstance(second, Pairs) or isinstance(alpha, complex):
            return NotImplemented
        return Pairs(overload(first.tensor, second.tensor, alpha=alpha))

    decomposes_complex(overload)(rule)


for _overload in (_aten.add.Tensor, _aten.sub.Tensor):
    _linear(_overload)


@decomposes_complex(_aten._conj.default, _aten._conj_physical.default, _aten.conj_physical.default)
def _conjugated(data: Any) -> Any:
    return conjugate(data)


@decomposes_complex(_aten.abs.default)
def _size(data: Any) -> Any:
    return torch.sqrt((data.tensor * data.tensor).sum(-1))


@decomposes_complex(_aten.complex.default)
def _complex(real: Any, imaginary: Any) -> Any:
    return interleaved(real, imaginary)


@decomposes_complex(_aten.polar.default)
def _polar(size: Any, angle: Any) -> Any:
    """A quarter turn after the cosine is the sine."""
    quarters = torch.arange(2).to(angle.dtype) * (-torch.pi / 2)
    return Pairs(size.unsqueeze(-1) * torch.cos(angle.unsqueeze(-1) + quarters))


@decomposes_complex(_aten.view_as_complex.default)
def _view_as_complex(pairs: Any) -> Any:
    return Pairs(pairs)


@decomposes_complex(_aten.view_as_real.default)
def _view_as_real(data: Any) -> Any:
    return data.tensor


@decomposes_complex(_aten.full.default)
def _full(sizes: Any, value: Any, *, dtype: Any = None, **_: Any) -> Any:
    number, real = complex(value), (dtype or torch.complex64).to_real()
    return interleaved(*(torch.full(sizes, part, dtype=real) for part in (number.real, number.imag)))


@decomposes_complex(_aten.zeros.default)
def _zeros(sizes: Any, *, dtype: Any = None, **_: Any) -> Any:
    return Pairs(torch.zeros([*sizes, 2], dtype=(dtype or torch.complex64).to_real()))


@decomposes_complex(_aten.copy.default)
def _copied(data: Any, source: Any, non_blocking: bool = False) -> Any:
    if not isinstance(data, Pairs) or not isinstance(source, Pairs):
        return NotImplemented
    return Pairs(source.tensor.expand(data.tensor.shape).clone().to(data.tensor.dtype))


def _same(overload: Any) -> None:
    """Pairs are moved, or negated, like single numbers."""

    def rule(data: Any, **_: Any) -> Any:
        return Pairs(overload(data.tensor))

    decomposes_complex(overload)(rule)


for _overload in (
    _aten.neg.default, _aten.clone.default, _aten.alias.default, _aten.detach.default,
    _aten.zeros_like.default, _aten.empty_like.default,
):  # fmt: skip
    _same(_overload)


def _with_sizes(overload: Any) -> None:
    def rule(data: Any, sizes: Any, **_: Any) -> Any:
        return Pairs(overload(data.tensor, [*sizes, 2]))

    decomposes_complex(overload)(rule)


for _overload in (
    _aten.view.default, _aten._unsafe_view.default, _aten.reshape.default, _aten.expand.default,
):  # fmt: skip
    _with_sizes(_overload)


def _along(overload: Any, new: int = 0) -> None:
    """An operator along a dimension; `new`: dimensions that it adds."""

    def rule(data: Any, dim: int = 0, *args: Any, **kwargs: Any) -> Any:
        return Pairs(overload(data.tensor, dim % (data.rank + new), *args, **kwargs))

    decomposes_complex(overload)(rule)


for _overload in (_aten.slice.Tensor, _aten.select.int, _aten.squeeze.dim, _aten.index_select.default):
    _along(_overload)
_along(_aten.unsqueeze.default, 1)


def _several(overload: Any, new: int) -> None:
    def rule(parts: Any, dim: int = 0) -> Any:
        if not all(isinstance(part, Pairs) for part in parts):
            return NotImplemented
        return Pairs(overload([part.tensor for part in parts], dim % (parts[0].rank + new)))

    decomposes_complex(overload)(rule)


_several(_aten.cat.default, 0)
_several(_aten.stack.default, 1)


@decomposes_complex(_aten.permute.default)
def _permuted(data: Any, dims: Any) -> Any:
    return Pairs(data.tensor.permute([*(d % data.rank for d in dims), data.rank]))


@decomposes_complex(_aten.transpose.int)
def _transposed(data: Any, first: int, second: int) -> Any:
    return Pairs(data.tensor.transpose(first % data.rank, second % data.rank))


def _reduction(overload: Any) -> None:
    def rule(data: Any, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> Any:
        if dtype is not None:
            return NotImplemented
        return Pairs(overload(data.tensor, [d % data.rank for d in dim or range(data.rank)], keepdim))

    decomposes_complex(overload)(rule)


for _overload in (_aten.sum.dim_IntList, _aten.mean.dim):
    _reduction(_overload)
