"""Elementwise operators run over memory as it lies: no dimension order needs turning."""

from __future__ import annotations

from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.layout import StoredTensor

_aten = torch.ops.aten

# Copies are not tagged pointwise, but their result is laid out as their first argument is.
_ELEMENTWISE = frozenset({_aten.copy_.default, _aten.fill_.Scalar, _aten.fill_.Tensor, _aten.zero_.default})


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
