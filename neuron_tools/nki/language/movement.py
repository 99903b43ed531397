"""Language functions that move data: load, store, copy, transpose, gather."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.nki import dtypes, host_arrays
from neuron_tools.nki.dtypes import as_dtype
from neuron_tools.nki.isa.copies import memset, tensor_copy
from neuron_tools.nki.isa.dma import dma_copy, dma_transpose
from neuron_tools.nki.isa.enums import oob_mode
from neuron_tools.nki.isa.gpsimd import nc_n_gather
from neuron_tools.nki.isa.issue import ready, refuse, require_tensors
from neuron_tools.nki.isa.matmul import nc_transpose
from neuron_tools.nki.language.creation import ndarray
from neuron_tools.nki.language.results import Restriction, result
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import exact, write


def load(src: NkiTensor, dtype: Any = None, mask: Any = None, mode: oob_mode = oob_mode.error) -> NkiTensor:
    """A tile in SBUF with the elements of a tensor in HBM.

    Args:
        src: Tensor or view in HBM; its first dimension becomes the partitions.
        dtype: Type of the tile; default that of `src`.
        mask: Where to load (older dialect); elsewhere the tile holds nothing.
        mode: What an index out of bounds does (older dialect): an error, or the tile keeps what it holds.

    Raises:
        NkiValidationError: More partitions than there are.
    """
    require_tensors("nl.load", src=src)
    _require_hbm("nl.load", "src", src, "use the tile itself, or nl.copy")
    kind = as_dtype(dtype) if dtype is not None else src.dtype
    left = Restriction(src.shape, mask)

    def emit(target: NkiTensor) -> None:
        left.run(target, lambda part: dma_copy(part, left.part(src), oob_mode=left.mode(mode)))

    return result(src.shape, kind, emit)


def _require_hbm(name: str, operand: str, tensor: NkiTensor, remedy: str) -> None:
    """Refuse a tile where a function moves data from or to HBM."""
    if tensor.buffer.is_on_chip:
        raise refuse(
            f"{name} takes a tensor in HBM as {operand}, but the tile of shape {tensor.shape} lies in "
            f"{tensor.buffer}; {remedy}"
        )


def store(dst: NkiTensor, value: Any, mask: Any = None, mode: oob_mode = oob_mode.error) -> None:
    """Copy a tile to a tensor in HBM.

    Args:
        dst: Tensor or view in HBM.
        value: Tile in SBUF of as many elements (from PSUM through SBUF), or a number.
        mask: Where to store (older dialect).
        mode: What an index out of bounds does (older dialect): an error, or the element is left out.

    Raises:
        NkiValidationError: The sizes differ.
    """
    trace = ready()
    require_tensors("nl.store", dst=dst)
    _require_hbm("nl.store", "dst", dst, "assign to the tile, or use nisa.tensor_copy")
    if not isinstance(value, NkiTensor):
        tile = ndarray(dst.shape, dst.dtype, MemoryRegion.sbuf)
        memset(tile, value)
        value = tile
    if value.buffer is MemoryRegion.psum:
        staged = ndarray(value.shape, value.dtype, MemoryRegion.sbuf)
        tensor_copy(staged, value)
        value = staged
    if value.shape != dst.shape and value.size != dst.size:
        value = value.broadcast_to(dst.shape)
    left = Restriction(dst.shape, mask)
    if left.empty:
        return
    if left.rest is not None and not trace.values and dst.limits is None:
        left.rest = None
    left.run(dst, lambda part: dma_copy(part, left.part(value), oob_mode=left.mode(mode)))


def copy(x: NkiTensor, dtype: Any = None, mask: Any = None, engine: Any = None) -> NkiTensor:
    """A copy of a tile in SBUF, as `dtype`."""
    from neuron_tools.nki.isa.enums import engine as engines

    kind = as_dtype(dtype) if dtype is not None else x.dtype
    left = Restriction(x.shape, mask)
    chosen = engine if engine is not None else engines.unknown

    def emit(target: NkiTensor) -> None:
        if x.buffer.is_on_chip:
            left.run(target, lambda part: tensor_copy(part, left.part(x), chosen))
        else:
            left.run(target, lambda part: dma_copy(part, left.part(x)))

    return result(x.shape, kind, emit)


def assign(target: NkiTensor, value: Any) -> None:
    """`target[...] = value`: a copy of a tile, or a filling with a number."""
    if not isinstance(value, NkiTensor):
        if target.buffer.is_on_chip:
            memset(target, value)
        else:
            store(target, value)
        return
    if value.shape != target.shape and value.size != target.size:
        value = value.broadcast_to(target.shape)
    if target.buffer.is_on_chip and value.buffer.is_on_chip:
        tensor_copy(target, value)
    else:
        dma_copy(target, value)


def load_transpose2d(src: NkiTensor, dtype: Any = None, mask: Any = None) -> NkiTensor:
    """A tile in SBUF with a two-dimensional tensor of HBM, transposed by DMA.

    Raises:
        NkiValidationError: `src` does not have two dimensions.
    """
    if src.ndim != 2:
        raise refuse(f"load_transpose2d takes two dimensions, got shape {src.shape}")
    kind = as_dtype(dtype) if dtype is not None else src.dtype
    left = Restriction(src.shape, mask)
    rows, columns = src.shape

    def emit(target: NkiTensor) -> None:
        part = left.part(src)
        turned = target
        if left.rectangle is not None:
            turned = target.within((left.rectangle[1], left.rectangle[0]))
        dma_transpose(turned, part)

    return result((columns, rows), kind, emit, left=left)


def transpose(x: NkiTensor, dtype: Any = None, mask: Any = None) -> NkiTensor:
    """A tile of at most 128 x 128 transposed on the Tensor engine; the result lies in PSUM."""
    kind = as_dtype(dtype) if dtype is not None else x.dtype
    flat = x.reshape((x.shape[0], -1)) if x.ndim != 2 else x

    def emit(target: NkiTensor) -> None:
        if target.buffer is MemoryRegion.psum:
            nc_transpose(target, _in_sbuf(flat))
            return
        staged = ndarray((flat.shape[1], flat.shape[0]), x.dtype, MemoryRegion.psum)
        nc_transpose(staged, _in_sbuf(flat))
        tensor_copy(target, staged)

    left = Restriction(x.shape, mask)
    return result((flat.shape[1], flat.shape[0]), kind, emit, MemoryRegion.psum, left=left)


def _in_sbuf(x: NkiTensor) -> NkiTensor:
    if x.buffer is not MemoryRegion.psum:
        return x
    staged = ndarray(x.shape, x.dtype, MemoryRegion.sbuf)
    tensor_copy(staged, x)
    return staged


def in_sbuf(x: NkiTensor) -> NkiTensor:
    """The tile, copied to SBUF if it lies in PSUM."""
    return _in_sbuf(x)


def broadcast_to(x: NkiTensor, shape: Sequence[int], dtype: Any = None, mask: Any = None) -> NkiTensor:
    """The tile repeated along its dimensions of size 1, as a view (a copy if the type changes)."""
    view = x.broadcast_to(tuple(shape))
    return view if dtype is None or as_dtype(dtype) is x.dtype else copy(view, dtype)


def expand_dims(x: NkiTensor, axis: int | Sequence[int]) -> NkiTensor:
    """The tile with new dimensions of size 1 at one place or several of the result."""
    places = (axis,) if isinstance(axis, int) else tuple(axis)
    rank = x.ndim + len(places)
    for place in sorted(place % rank for place in places):
        x = x.expand_dim(place)
    return x


def static_cast(input_data: Any, dtype: Any) -> Any:
    """The tile, or the array outside kernels, as another type (older dialect)."""
    if isinstance(input_data, (np.ndarray, np.generic)):
        return host_arrays.static_cast(input_data, dtype)
    return copy(input_data, dtype) if isinstance(input_data, NkiTensor) else input_data


def gather_flattened(
    data: NkiTensor, indices: NkiTensor, axis: int = 0, dtype: Any = None, mask: Any = None
) -> NkiTensor:
    """result[p, i] = data[p, indices[p, i]], the free dimensions of `data` taken as one."""
    kind = as_dtype(dtype) if dtype is not None else data.dtype

    def emit(target: NkiTensor) -> None:
        wanted = indices
        if wanted.dtype is not dtypes.uint32:
            wanted = ndarray(indices.shape, dtypes.uint32, MemoryRegion.sbuf)
            tensor_copy(wanted, indices)
        nc_n_gather(target, data, wanted)

    return result(indices.shape, kind, emit)


def device_print(print_prefix: str, x: Any = None, mask: Any = None, **options: Any) -> None:
    """Print a tensor's values while the kernel runs."""
    value = x if x is not None else options.get("tensor")
    trace = ready()
    if trace.values:
        shown = exact(value) if isinstance(value, NkiTensor) else value
        print(print_prefix, shown)


def _add_at(part: NkiTensor, before: npt.NDArray[Any], added: npt.NDArray[np.float32]) -> None:
    """Add to what an indirect view held before; a position that occurs twice gets both."""
    assert part.gather is not None
    kept = part.gather >= 0
    places = part.gather[kept]
    part.flat[places] = before[kept]
    flat = part.flat.astype(np.float32)
    np.add.at(flat, places, added[kept])
    part.flat[...] = flat.astype(part.dtype.dtype)


def atomic_rmw(dst: NkiTensor, value: NkiTensor, op: Any, mask: Any = None) -> None:
    """dst = op(dst, value) in HBM, one element after another (older dialect).

    Raises:
        NkiValidationError: The operator is not add.
    """
    from neuron_tools.nki.operators import find_operator

    if find_operator(op).name != "add":
        raise refuse("atomic_rmw adds; other operators do not exist on the DMA engines")
    left = Restriction(dst.shape, mask)

    def emit(part: NkiTensor) -> None:
        source = left.part(value)
        before = exact(part).copy() if ready().values else None
        dma_copy(part, source, oob_mode=left.mode())
        if before is not None:
            added = np.broadcast_to(source.array.astype(np.float32), part.shape)
            if part.gather is not None:
                _add_at(part, before, added)
            else:
                write(part, before.astype(np.float32) + added)

    left.run(dst, emit)
