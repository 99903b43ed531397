"""Elementwise instructions, as results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neuron_tools.nki import isa
from neuron_tools.nki.dtypes import as_dtype, promote
from neuron_tools.nki.isa.enums import engine as engines
from neuron_tools.nki.language.movement import in_sbuf
from neuron_tools.nki.language.results import Restriction
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.older.results import as_large, result_type, returned, tile_result
from neuron_tools.nki.tensor import NkiTensor

activation = returned(isa.activation, "data")
activation_reduce = returned(isa.activation_reduce, "data")
tensor_scalar = returned(isa.tensor_scalar, "data")
tensor_scalar_reduce = returned(isa.tensor_scalar_reduce, "data")
scalar_tensor_tensor = returned(isa.scalar_tensor_tensor, "data", "operand1")
reciprocal = returned(isa.reciprocal, "data")
dropout = returned(isa.dropout, "data")


def tensor_tensor(
    data1: NkiTensor,
    data2: NkiTensor,
    op: Any,
    *,
    dtype: Any = None,
    mask: Any = None,
    engine: engines = engines.unknown,
) -> NkiTensor:
    """data1 op data2."""
    kind = result_type(dtype, promote(data1.dtype, data2.dtype))
    shape = data1.shape if data1.size >= data2.size else data2.shape

    def emit(target: NkiTensor, left: Restriction) -> None:
        first, second = left.part(data1), left.part(data2)
        if first.buffer is MemoryRegion.psum and second.buffer is MemoryRegion.psum:
            second = in_sbuf(second)
        first, second = as_large(first, target), as_large(second, target)
        chosen = engine
        if chosen is engines.gpsimd and MemoryRegion.psum in (first.buffer, second.buffer, target.buffer):
            chosen = engines.vector
        isa.tensor_tensor(target, first, second, op, chosen)

    return tile_result(shape, kind, mask, emit)


def memset(
    shape: Sequence[int],
    value: Any,
    dtype: Any,
    *,
    mask: Any = None,
    engine: engines = engines.unknown,
) -> NkiTensor:
    """A tile filled with a constant."""
    extents = tuple(int(extent) for extent in shape)
    return tile_result(extents, as_dtype(dtype), mask, lambda target, left: isa.memset(target, value, engine))
