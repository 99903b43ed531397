"""Results of the older dialect's instructions: tiles of their operands' shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from neuron_tools.nki.dtypes import DType, as_dtype
from neuron_tools.nki.language.results import Restriction, result
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.tensor import NkiTensor


def result_type(dtype: Any, default: DType) -> DType:
    """The type that a call asks for, or the one that follows from its operands."""
    return as_dtype(dtype) if dtype is not None else default


def tile_result(
    shape: Sequence[int],
    dtype: DType,
    mask: Any,
    emit: Callable[[NkiTensor, Restriction], object],
    region: MemoryRegion = MemoryRegion.sbuf,
) -> NkiTensor:
    """A held-back result of the shape of its operands, restricted by the mask."""
    left = Restriction(shape, mask)
    return result(tuple(shape), dtype, lambda target: left.run(target, lambda part: emit(part, left)), region)
