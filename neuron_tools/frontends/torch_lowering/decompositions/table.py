"""Which operators are taken apart before torch-mlir sees them, and how.

Starts from torch-mlir's own table (PyTorch's core decompositions), adds what its StableHLO conversion lacks,
and replaces what would cost the device operations that mean nothing (an `addmm` with its factors of one).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
import torch._decomp
from torch._decomp import get_decompositions
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

from neuron_tools.frontends.torch_lowering.decompositions.registry import OWN, REFUSED, REPLACED

_aten = torch.ops.aten
# Importing a family registers its decompositions.
for _family in (
    "alignment", "attention", "collectives", "compaction", "complex_numbers", "convolution", "embedding_bag",
    "encoder_layer", "filling", "fourier", "gradients", "grid_sampling", "grouped", "indexing",
    "linear_algebra", "normalization", "pooling", "products", "random_numbers", "recurrent", "resampling",
    "scatter", "selection",
):  # fmt: skip
    import_module(f"{__package__}.{_family}")

# Single activation functions of the Scalar engine: never spelled out.
_KEPT = (
    _aten.gelu.default, _aten.erf.default, _aten.erfinv.default, _aten.lgamma.default, _aten.digamma.default,
)  # fmt: skip

_FROM_PYTORCH = (
    _aten.squeeze.dims,
    _aten.embedding_dense_backward,
    _aten.native_batch_norm_backward,
    _aten.native_layer_norm_backward,
    _aten.native_group_norm_backward,
)


@functools.cache
def decomposition_table() -> dict[Any, Callable[..., Any]]:
    """Operator overload -> function of tensors."""
    table: dict[Any, Callable[..., Any]] = dict(get_decomposition_table())
    table.update(get_decompositions(list(_FROM_PYTORCH)))
    table.update(OWN)
    for overload in _KEPT:
        table.pop(overload, None)
    return table


def replacement_of(target: Any) -> Callable[..., Any] | None:
    """The function that is traced by itself in the place of an operator, or None."""
    found = REPLACED.get(target)
    if found is None and isinstance(target, torch._ops.OpOverload):
        found = REPLACED.get(target._schema.name)
    return found


@functools.cache
def fallback_table() -> dict[Any, Callable[..., Any]]:
    """Decompositions for operators that torch-mlir turned out not to lower: all that PyTorch has."""
    table = dict(torch._decomp.global_decomposition_table["post_autograd"])
    table.update(REFUSED)
    for overload in decomposition_table():
        table.pop(overload, None)
    return table
