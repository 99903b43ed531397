"""Strided tensors as the compiler sees them: dense memory in storage order, then a view.

A weight that reaches `mm` through `.t()` is a row-major parameter and a `transpose`, which is what the
device has to deal with. Operators that treat all elements alike run in storage order instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.builder import GraphBuilder
from neuron_tools.frontends.torch_lowering.fake import fake_tensor

_aten = torch.ops.aten

# Copies are not tagged pointwise, but their result is laid out as their first argument is.
_ELEMENTWISE = frozenset({_aten.copy_.default, _aten.fill_.Scalar, _aten.fill_.Tensor, _aten.zero_.default})


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor argument: element type, extents and strides in elements."""

    dtype: torch.dtype
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def storage_order(self) -> tuple[int, ...]:
        """Dimensions from the largest stride to the smallest; broadcast and unit ones stay in place."""
        moving = [d for d, size in enumerate(self.sizes) if size > 1 and self.strides[d] > 0]
        ordered = iter(sorted(moving, key=lambda d: -self.strides[d]))
        return tuple(next(ordered) if d in moving else d for d in range(len(self.sizes)))

    def permuted(self, order: Sequence[int]) -> StoredTensor:
        """The same memory with its dimensions in another order."""
        return StoredTensor(
            self.dtype, tuple(self.sizes[d] for d in order), tuple(self.strides[d] for d in order)
        )

    def place(self, builder: GraphBuilder) -> Any:
        """Add the parameter in storage order and the views that lead to this tensor."""
        order = self.storage_order
        stored = self.permuted(order)
        sizes = [1 if stride == 0 else size for size, stride in zip(stored.sizes, stored.strides)]
        node = builder.parameter(fake_tensor(sizes, None, self.dtype))
        if order != tuple(range(len(order))):
            node = builder.call(_aten.permute.default, (node, _inverse(order)), {}, row=0)
        if sizes != list(stored.sizes):
            node = builder.call(_aten.expand.default, (node, list(self.sizes)), {}, row=0)
        return node


def in_storage_order(target: Any, values: list[Any]) -> list[Any]:
    """Turn the tensors of an elementwise operator so that the largest one is dense as it stands."""
    tensors = [value for value in values if isinstance(value, StoredTensor) and value.sizes]
    if not tensors or not _is_elementwise(target) or len({len(tensor.sizes) for tensor in tensors}) > 1:
        return values
    largest = max(tensors, key=_element_count)
    if target._schema.is_mutable:
        largest = tensors[0]
    order = largest.storage_order
    return [value.permuted(order) if value in tensors else value for value in values]


def _is_elementwise(target: Any) -> bool:
    return torch.Tag.pointwise in target.tags or target in _ELEMENTWISE


def _element_count(tensor: StoredTensor) -> int:
    count = 1
    for size, stride in zip(tensor.sizes, tensor.strides):
        count *= size if stride else 1
    return count


def _inverse(order: Sequence[int]) -> list[int]:
    return sorted(range(len(order)), key=order.__getitem__)
