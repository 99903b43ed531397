"""Strided tensors as the compiler sees them: dense memory in storage order, then a view.

A weight that reaches `mm` through `.t()` is a row-major parameter and a `transpose`, which is what the
device has to deal with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.builder import GraphBuilder
from neuron_tools.frontends.torch_lowering.fake import fake_tensor
from neuron_tools.frozen import frozen

_aten = torch.ops.aten


@frozen
class StoredTensor:
    """A tensor argument: element type, extents and strides in elements."""

    dtype: torch.dtype
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, tensor: torch.Tensor) -> StoredTensor:
        """A tensor's type and layout."""
        return cls(tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()))

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

    @property
    def stored_sizes(self) -> tuple[int, ...]:
        """Extents in storage order; a broadcast dimension is stored once."""
        stored = self.permuted(self.storage_order)
        return tuple(1 if stride == 0 else size for size, stride in zip(stored.sizes, stored.strides))

    @property
    def is_dense(self) -> bool:
        """Whether every element has a place of its own in memory, without a broadcast dimension."""
        return self.stored_sizes == self.permuted(self.storage_order).sizes

    @property
    def row_major(self) -> StoredTensor:
        """The same tensor with its elements in the order of its dimensions, each in a place of its own."""
        strides = torch.empty(self.sizes, device="meta").stride()
        return StoredTensor(self.dtype, self.sizes, tuple(strides))

    def place(self, builder: GraphBuilder, name: str = "argument", kind: str = "input", row: int = 0) -> Any:
        """Add the parameter in storage order and the views that lead to this tensor."""
        node = builder.parameter(fake_tensor(self.stored_sizes, None, self.dtype), name, kind)
        return self.from_storage_order(builder, node, row)

    def from_storage_order(self, builder: GraphBuilder, node: Any, row: int) -> Any:
        """The views that lead to this tensor from a node with its `stored_sizes`."""
        order = self.storage_order
        if order != tuple(range(len(order))):
            node = builder.call(_aten.permute.default, (node, _inverse(order)), {}, row)
        if self.stored_sizes != self.permuted(order).sizes:
            node = builder.call(_aten.expand.default, (node, list(self.sizes)), {}, row)
        return node


def _inverse(order: Sequence[int]) -> list[int]:
    return sorted(range(len(order)), key=order.__getitem__)
