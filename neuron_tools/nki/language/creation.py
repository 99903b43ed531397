"""Tensors declared by kernels: in SBUF, PSUM and HBM, empty or filled."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from neuron_tools.nki import dtypes, tracer as tracing
from neuron_tools.nki.buffer import Buffer
from neuron_tools.nki.dtypes import as_dtype
from neuron_tools.nki.errors import NkiValidationError, OutOfMemoryError
from neuron_tools.nki.isa.copies import memset
from neuron_tools.nki.isa.issue import ready
from neuron_tools.nki.isa.random_numbers import stream, uniform
from neuron_tools.nki.layout import row_major
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.placement import Placement
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import cast
from neuron_tools.records.program import Engine

Shape = Sequence[int]


class par_dim(int):
    """Marks a dimension of a shape as the partition dimension (older dialect): `nl.par_dim(128)`."""


def ndarray(
    shape: Shape,
    dtype: Any = None,
    buffer: Any = None,
    name: str = "",
    address: tuple[int, int] | None = None,
    lazy_initialization: bool = False,
) -> NkiTensor:
    """Declare a tensor; it holds nothing yet.

    Args:
        shape: Size of each dimension; on chip the first (or the one marked `par_dim`) is the partitions.
        dtype: Element type.
        buffer: `nl.sbuf` (default), `nl.psum`, `nl.hbm`, `nl.private_hbm`, `nl.shared_hbm`, or a placement
            of `nki.compiler`.
        name: Name in messages and the profile.
        address: (partition, byte) where the kernel wants it.
        lazy_initialization: A hint to the older compiler.

    Raises:
        NkiValidationError: The tensor does not fit, or lies beyond the memory's end.
    """
    trace = ready()
    kind = as_dtype(dtype if dtype is not None else dtypes.float32)
    if isinstance(shape, int):
        shape = (shape,)
    axis = partition_axis(shape) if trace.older_dialect else 0
    extents = _extents(shape)
    placement = buffer if isinstance(buffer, Placement) else None
    region = placement.region if placement is not None else _region(buffer)
    if region is MemoryRegion.shared_hbm:
        return trace_shared(trace, kind, extents, name)
    storage = trace.new_buffer(
        region, kind, extents, partition_axis=axis, name=name or "", is_placed=address is not None
    )
    if address is not None:
        storage.partition, storage.address = int(address[0]), int(address[1])
    elif placement is not None:
        placement.place(storage)
    if storage.address is not None:
        _check_inside(trace, storage)
    return NkiTensor(storage, kind, storage.shape, storage.strides)


def _extents(shape: Shape) -> tuple[int, ...]:
    """The sizes of a shape's dimensions.

    Raises:
        NkiValidationError: One is no whole number, or is not positive.
    """
    try:
        extents = tuple(map(index, shape))
    except TypeError:
        raise NkiValidationError(
            f"the shape {tuple(shape)} has a size that is no whole number; divide with //", tracing.where()
        ) from None
    if min(extents, default=1) < 1:
        raise NkiValidationError(
            f"the shape {extents} has a size below 1; give positive sizes", tracing.where()
        )
    return extents


def _check_inside(trace: tracing.Tracer, storage: Buffer) -> None:
    """Refuse a tile that the kernel placed beyond the end of its memory."""
    core = trace.core
    sbuf = storage.region is MemoryRegion.sbuf
    capacity = core.sbuf_bytes_per_partition if sbuf else core.psum_bytes_per_partition
    places = (storage.address or 0, *storage.block_addresses)
    size = storage.pitch_bytes if storage.block_addresses else storage.bytes_per_partition
    tile = f"the tile {storage.name or ''} of shape {storage.shape} and type {storage.dtype}"
    if min(places) < 0 or max(places) + size > capacity:
        raise OutOfMemoryError(
            f"{tile} is placed at the bytes {min(places)} to {max(places) + size} of each partition, but "
            f"{str(storage.region).upper()} has {capacity}; place it lower",
            tracing.where(),
        )
    if storage.partition + storage.partitions > core.sbuf_partitions:
        raise NkiValidationError(
            f"{tile} is placed from partition {storage.partition} on, which leaves "
            f"{core.sbuf_partitions - storage.partition}; place it lower",
            tracing.where(),
        )


def partition_axis(shape: Shape) -> int:
    """The dimension marked `par_dim`; the first where none is.

    Raises:
        NkiValidationError: Several are.
    """
    marked = [at for at, extent in enumerate(shape) if isinstance(extent, par_dim)]
    if len(marked) > 1:
        raise NkiValidationError(
            f"the shape {tuple(shape)} marks {len(marked)} dimensions as partitions; mark one with par_dim",
            tracing.where(),
        )
    return marked[0] if marked else 0


def _region(buffer: Any) -> MemoryRegion:
    if buffer is None:
        return MemoryRegion.sbuf
    if isinstance(buffer, MemoryRegion):
        return buffer
    region = getattr(buffer, "region", None)
    if isinstance(region, MemoryRegion):
        return region
    try:
        return MemoryRegion[str(buffer)]
    except KeyError:
        raise NkiValidationError(f"there is no buffer {buffer!r}", tracing.where()) from None


def trace_shared(trace: tracing.Tracer, dtype: dtypes.DType, shape: tuple[int, ...], name: str) -> NkiTensor:
    """A tensor in shared HBM: the same one for every instance of a launch."""
    counter = trace.shared.setdefault("shared-count", 0)
    trace.shared["shared-count"] = counter + 1
    key = ("shared", name or counter, shape, dtype)
    storage = trace.shared.get(key)
    if storage is None:
        storage = trace.new_buffer(MemoryRegion.shared_hbm, dtype, shape, name=name or f"shared.{counter}")
        trace.shared[key] = storage
        if trace.launch is not None:
            trace.launch.share(key, storage)
    return NkiTensor(storage, dtype, shape, row_major(shape))


def full(
    shape: Shape, fill_value: Any, dtype: Any = None, buffer: Any = None, name: str = "", **options: Any
) -> NkiTensor:
    """A tensor filled with one value."""
    tensor = ndarray(shape, dtype, buffer, name, **options)
    if tensor.buffer.is_on_chip:
        for block in partition_blocks(tensor):
            memset(block, fill_value)
    else:
        _fill_hbm(tensor, fill_value)
    return tensor


def partition_blocks(tensor: NkiTensor) -> list[NkiTensor]:
    """The tensor as tiles that start with the partition dimension (older dialect: one per block)."""
    storage = tensor.backing
    if storage.blocks == 1:
        return [tensor]
    tiles = []
    shape = (storage.partitions, storage.pitch)
    for block in range(storage.blocks):
        offset = block * storage.partitions * storage.pitch
        tiles.append(NkiTensor(storage, tensor.dtype, shape, (storage.pitch, 1), offset))
    return tiles


def _fill_hbm(tensor: NkiTensor, value: Any) -> None:
    from neuron_tools.nki.isa.dma import dma_copy

    rows = min(tensor.shape[0], 128) if tensor.ndim > 1 else 1
    flat = tensor.reshape((-1, tensor.shape[-1])) if tensor.ndim > 1 else tensor.reshape((1, -1))
    tile = ndarray((min(rows, flat.shape[0]), flat.shape[1]), tensor.dtype, MemoryRegion.sbuf)
    memset(tile, value)
    for start in range(0, flat.shape[0], rows):
        stop = min(start + rows, flat.shape[0])
        dma_copy(flat[start:stop], tile[0 : stop - start])


def zeros(shape: Shape, dtype: Any = None, buffer: Any = None, name: str = "", **options: Any) -> NkiTensor:
    """A tensor of zeros."""
    return full(shape, 0, dtype, buffer, name, **options)


def ones(shape: Shape, dtype: Any = None, buffer: Any = None, name: str = "", **options: Any) -> NkiTensor:
    """A tensor of ones."""
    return full(shape, 1, dtype, buffer, name, **options)


def empty_like(
    x: NkiTensor, dtype: Any = None, buffer: Any = None, name: str = "", **options: Any
) -> NkiTensor:
    """A tensor of the shape (and by default type and memory) of another; it holds nothing yet."""
    return ndarray(x.shape, dtype or x.dtype, buffer or x.buffer, name, **options)


def zeros_like(
    x: NkiTensor, dtype: Any = None, buffer: Any = None, name: str = "", **options: Any
) -> NkiTensor:
    """A tensor of zeros of the shape (and by default type and memory) of another."""
    return zeros(x.shape, dtype or x.dtype, buffer or x.buffer, name, **options)


def rand(shape: Shape, dtype: Any = None, buffer: Any = None, name: str = "", **options: Any) -> NkiTensor:
    """A tile of numbers uniform in [0, 1)."""
    tensor = ndarray(shape, dtype or dtypes.float32, buffer, name)
    uniform(tensor, 0.0, 1.0)
    return tensor


def random_seed(seed: Any, mask: Any = None) -> None:
    """Seed the generator of `rand` and `dropout`: a number or a tile of one element."""
    trace = ready()
    if isinstance(seed, NkiTensor):
        if not trace.values:
            return
        seed = int(seed.array.reshape(-1)[0])
    stream(trace, Engine.VECTOR).seed(int(seed))


def shared_constant(constant: Any, dtype: Any = None) -> NkiTensor:
    """A tensor in HBM holding an array that is known while tracing; equal constants are one tensor.

    Args:
        constant: An array, or the path of an `.npy` file.
        dtype: Element type; default the array's.

    Raises:
        NkiValidationError: There is no such file.
    """
    trace = ready()
    values = _read_constant(constant) if isinstance(constant, (str, Path)) else np.asarray(constant)
    kind = as_dtype(dtype if dtype is not None else values.dtype)
    key = ("constant", values.shape, kind, values.tobytes())
    storage = trace.shared.get(key)
    if storage is None:
        storage = trace.new_buffer(MemoryRegion.private_hbm, kind, values.shape, kind="constant",
                                   name=f"constant.{len(trace.shared)}")  # fmt: skip
        storage.factory = lambda: np.ascontiguousarray(cast(values, kind)).reshape(-1)
        storage.written_all()
        trace.shared[key] = storage
    return NkiTensor(storage, kind, values.shape, row_major(values.shape))


def _read_constant(path: str | Path) -> Any:
    try:
        return np.load(path)
    except (OSError, ValueError) as error:
        raise NkiValidationError(
            f"nl.shared_constant cannot read {str(path)!r}: {error}; give an array or an .npy file",
            tracing.where(),
        ) from None


def shared_identity_matrix(n: int, dtype: Any = dtypes.uint8, dst: NkiTensor | None = None) -> NkiTensor:
    """The n x n identity in a tile in SBUF, loaded once a kernel, or in `dst`.

    Args:
        n: Rows and columns.
        dtype: Element type.
        dst: Tile to load it into; default a tile of its own, the same for every call with this size and type.
    """
    from neuron_tools.nki.isa.dma import dma_copy

    trace = ready()
    identity = shared_constant(np.eye(int(n), dtype=np.float32), dtype)
    if trace.older_dialect and dst is None:
        return identity
    key = ("identity", identity.shape, identity.dtype)
    held: NkiTensor | None = trace.shared.get(key) if dst is None else dst
    if held is None:
        held = trace.shared[key] = ndarray(identity.shape, identity.dtype, MemoryRegion.sbuf)
        dma_copy(held, identity)
    elif dst is not None:
        dma_copy(dst, identity)
    return held
