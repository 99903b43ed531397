"""Fake tensors and signatures: how lowering sees tensors without their values.

All fake tensors live on the CPU and in one fake mode, so graphs made by different tracers can be joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree

from neuron_tools.compiler.hlo import TensorType

FAKE_MODE = FakeTensorMode(allow_non_fake_inputs=True)

HLO_DTYPES: dict[torch.dtype, str] = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "f8E4M3FN",
    torch.float8_e5m2: "f8E5M2",
    torch.complex64: "complex<f32>",
    torch.complex128: "complex<f64>",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint64: "ui64",
    torch.uint32: "ui32",
    torch.uint16: "ui16",
    torch.uint8: "ui8",
    torch.bool: "i1",
}


def fake_tensor(sizes: Sequence[int], strides: Sequence[int] | None, dtype: torch.dtype) -> FakeTensor:
    """A fake CPU tensor; dense row-major without `strides`.

    Args:
        sizes: Extents, outermost first.
        strides: Elements between neighbours along each dimension, or None.
        dtype: Element type.
    """
    with FAKE_MODE:
        if strides is None:
            return torch.empty(tuple(sizes), dtype=dtype)
        return torch.empty_strided(tuple(sizes), tuple(strides), dtype=dtype)


def refake(value: Any) -> Any:
    """The same structure with every tensor replaced by a dense fake CPU tensor of this module's mode."""

    def convert(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return fake_tensor([int(extent) for extent in leaf.shape], None, leaf.dtype)

    return pytree.tree_map(convert, value)


def signature(leaf: Any) -> Any:
    """A hashable stand-in for one flattened argument: tensors by type and sizes, others by value."""
    if isinstance(leaf, torch.Tensor):
        return (leaf.dtype, tuple(leaf.shape))
    return (type(leaf), repr(leaf))


def tensor_type(tensor: torch.Tensor) -> TensorType:
    """Shape and element type of a (fake) tensor as the compiler writes them."""
    return TensorType(tuple(int(extent) for extent in tensor.shape), hlo_dtype(tensor.dtype))


def hlo_dtype(dtype: torch.dtype) -> str:
    """The compiler's name of a torch element type; an unknown (quantised, sub-byte) one counts as bytes."""
    return HLO_DTYPES.get(dtype, "ui8")
