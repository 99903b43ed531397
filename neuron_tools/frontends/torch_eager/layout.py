"""Elementwise operators run over memory as it lies: no dimension order needs turning."""

from __future__ import annotations

from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.layout import StoredTensor

_aten = torch.ops.aten

# Copies are not tagged pointwise, but their result is laid out as their first argument is.
_ELEMENTWISE = frozenset({_aten.copy_.default, _aten.fill_.Scalar, _aten.fill_.Tensor, _aten.zero_.default})


def common_order(target: Any, values: list[Any]) -> tuple[int, ...] | None:
    """Order of dimensions in which an elementwise operator's largest tensor is dense; None: it is none."""
    tensors = [value for value in values if isinstance(value, StoredTensor) and value.sizes]
    if not tensors or not _is_elementwise(target) or len({len(tensor.sizes) for tensor in tensors}) > 1:
        return None
    return (tensors[0] if target._schema.is_mutable else max(tensors, key=_element_count)).storage_order


def turned(values: list[Any], order: tuple[int, ...] | None) -> list[Any]:
    """The values with their tensors in an order of dimensions."""
    if order is None:
        return values
    return [
        value.permuted(order) if isinstance(value, StoredTensor) and value.sizes else value
        for value in values
    ]


def _is_elementwise(target: Any) -> bool:
    return torch.Tag.pointwise in target.tags or target in _ELEMENTWISE


def _element_count(tensor: StoredTensor) -> int:
    count = 1
    for size, stride in zip(tensor.sizes, tensor.strides):
        count *= size if stride else 1
    return count
