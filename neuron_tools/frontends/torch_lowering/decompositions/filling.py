"""Tensors of one number in unsigned integers, of which torch-mlir has no constants."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes_refused
from neuron_tools.frontends.torch_lowering.intrinsics import Intrinsic, becomes

_aten = torch.ops.aten


@decomposes_refused(_aten.full_like.default)
def _full_like(tensor: Any, fill_value: Any, *, dtype: Any = None, **_options: Any) -> Any:
    number = _aten.scalar_tensor(fill_value, dtype=dtype or tensor.dtype)
    return _aten.expand(number, list(tensor.shape))


def _unsigned_constant(node: fx.Node) -> Intrinsic | None:
    dtype = node.meta["val"].dtype
    has_none = not (dtype.is_signed or dtype == torch.bool)
    return Intrinsic("constant", {"value": node.args[0]}) if has_none else None


becomes("aten::scalar_tensor", _unsigned_constant)
