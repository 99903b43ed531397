"""The slower ways to index: ellipsis, index expressions, registers, tensors of indices, access patterns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_tools.arrays import Ints
from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.dtypes import DType, as_dtype
from neuron_tools.nki.errors import NkiValidationError, OutOfBoundsError
from neuron_tools.nki.index import Index, Mask, as_index, pad
from neuron_tools.nki.index_grid import IndexForm, grid_of
from neuron_tools.nki.layout import Shape, row_major, tile_layout
from neuron_tools.nki.registers import VirtualRegister, register_value
from neuron_tools.nki.scalars import require_32_bits
from neuron_tools.nki.tensor_base import Own, TensorBase

_INDIRECT_GROUP = 16  # partitions that share their positions on the Vector, Scalar and GpSimd engines


def index_view(tensor: Own, key: tuple[Any, ...]) -> Own:
    """`tensor[key]` for any key that the quick path does not take.

    Raises:
        OutOfBoundsError: A number or slice reaches outside the tensor.
        NkiValidationError: Too many indices, or an index of a kind that NKI has not.
    """
    view = _grid_view(tensor, key)
    if view is not None:
        return view
    if len(key) == 1 and isinstance(key[0], Mask):
        return _masked(tensor, key[0])
    items = _expanded(tensor, key)
    if any(isinstance(item, (Index, np.ndarray, TensorBase)) for item in items) or tensor.gather is not None:
        return _advanced(tensor, items)
    shape: list[int] = []
    strides: list[int] = []
    storage = tensor.backing
    partition_axis = _partition_axis(tensor) if storage.tile_rank else -1
    offset, axis = tensor.offset, 0
    outside: list[tuple[int, int, int, int]] = []  # extent, start, axis of the view, step
    for item in items:
        if item is None:
            shape.append(1)
            strides.append(0)
            continue
        extent, stride = tensor.shape[axis], tensor.strides[axis]
        if isinstance(item, slice):
            start, count, step = _slice_limits(tensor, item, extent, axis)
            offset += start * stride
            if start + (count - 1) * step >= extent and count:
                outside.append((extent, start, len(shape), step))
            shape.append(count)
            strides.append(stride * step)
        else:
            offset += _position(tensor, item, extent, axis) * stride
            if axis == partition_axis:
                shape.append(1)
                strides.append(stride)
        axis += 1
    if len(shape) < storage.tile_rank:
        shape, strides = tile_layout(shape, strides)
    view = tensor.placed(tuple(shape), tuple(strides), offset)
    if outside:
        view.limits = tuple(
            (extent, start, tuple(step if axis == at else 0 for axis in range(len(shape))))
            for extent, start, at, step in outside
        )
    return view


def _grid_view(tensor: Own, key: tuple[Any, ...]) -> Own | None:
    """The view that numbers and affine expressions pick; None for other keys, and where it reaches outside.

    Kernels of the older dialect index every operand so, each time with other offsets.
    """
    if len(key) != tensor.ndim or tensor.gather is not None:
        return None
    forms: list[IndexForm] = []
    offsets: list[int] = []
    for item in key:
        if isinstance(item, int):
            forms.append(None)
            offsets.append(item)
        elif type(item) is Index and item.values is None:
            forms.append((item.extents, item.coefficients))
            offsets.append(item.offset)
        else:
            return None
    if not any(forms):
        return None
    grid = grid_of(tensor.strides, tuple(forms))
    start = tensor.offset
    for offset, extent, stride, (low, high) in zip(offsets, tensor.shape, tensor.strides, grid.reaches):
        if offset + low < 0 or offset + high >= extent:
            return None
        start += offset * stride
    return tensor.placed(grid.extents, grid.strides, start)


def _masked(tensor: Own, mask: Mask) -> Own:
    """`tensor[mask]`: the rectangle that the mask leaves (older dialect)."""
    rectangle, rest = mask.split(tensor.shape)
    if rest is not None:
        raise NkiValidationError(
            "a tile can be restricted to a rectangle only; give the mask to the instruction (mask=...)",
            tracing.where(),
        )
    return tensor.within(rectangle)


def _partition_axis(tensor: TensorBase) -> int:
    """The axis that steps from partition to partition; -1 where none does.

    Axes of size 1 after it have its step too, and blocks of one partition each before it (older dialect).
    """
    storage = tensor.backing
    line = storage.pitch_bytes // tensor.dtype.itemsize
    axes = [axis for axis, stride in enumerate(tensor.strides) if stride == line]
    if not axes:
        return -1
    return axes[-1] if storage.blocks > 1 and storage.partitions == 1 else axes[0]


def _expanded(tensor: TensorBase, key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key with one item per dimension: ellipsis and missing dimensions become full slices."""
    flat: list[Any] = []
    for item in key:
        flat.extend(item) if isinstance(item, (tuple, list)) else flat.append(item)
    named = sum(item is not None and item is not Ellipsis for item in flat)
    missing = tensor.ndim - named
    if missing < 0:
        raise NkiValidationError(
            f"{named} indices for a tensor of {tensor.ndim} dimensions (shape {tensor.shape})",
            tracing.where(),
        )
    fill = [slice(None)] * missing
    for place, item in enumerate(flat):
        if item is Ellipsis:
            return (*flat[:place], *fill, *(i for i in flat[place + 1 :] if i is not Ellipsis))
    return (*flat, *fill)


def _slice_limits(tensor: TensorBase, item: slice, extent: int, axis: int) -> tuple[int, int, int]:
    """(start, count, step) of a slice: one that stays inside, or may be masked later (older dialect)."""
    step = 1 if item.step is None else register_value(item.step)
    start = 0 if item.start is None else register_value(item.start)
    stop = extent if item.stop is None else register_value(item.stop)
    start, stop = (start + extent if start < 0 else start), (stop + extent if stop < 0 else stop)
    if step <= 0:
        raise NkiValidationError(f"a slice needs a positive step, got {step}", tracing.where())
    masked_later = stop > extent and tracing.active().older_dialect
    if not 0 <= start <= stop or (stop > extent and not masked_later):
        raise OutOfBoundsError(
            f"slice {start}:{stop} of dimension {axis} is outside tensor {tensor.name!r} of shape "
            f"{tensor.shape}; end it at {extent}",
            tracing.where(),
        )
    return start, -(-(stop - start) // step), step


def _position(tensor: TensorBase, item: Any, extent: int, axis: int) -> int:
    if not isinstance(item, (int, np.integer, VirtualRegister)):
        raise NkiValidationError(f"a tensor cannot be indexed by {item!r}", tracing.where())
    position = int(item)
    if position < 0:
        position += extent
    if not 0 <= position < extent:
        raise OutOfBoundsError(
            f"index {int(item)} of dimension {axis} is outside tensor {tensor.name!r} of shape "
            f"{tensor.shape}",
            tracing.where(),
        )
    return position


def _advanced(tensor: Own, items: tuple[Any, ...]) -> Own:
    """Index expressions: a strided view while all are affine, explicit positions otherwise."""
    indices = [_expression(item) for item in items if item is not None]
    width = max((index.ndim for index in indices if isinstance(index, Index)), default=0)
    indices = [
        _on_partitions(index, width) if isinstance(item, TensorBase) else index
        for item, index in zip((item for item in items if item is not None), indices)
    ]
    whole = all(isinstance(index, Index) for index in indices)
    if not whole:
        indices, width = _slices_as_axes(tensor, indices, width)
    padded = [pad(index, width) for index in indices if isinstance(index, Index)]
    extents = tuple(max((index.extents[axis] for index in padded), default=1) for axis in range(width))
    if tensor.gather is None and all(index.values is None for index in padded):
        return _affine_view(tensor, padded, extents)
    return _gathered(tensor, padded, extents)


def _on_partitions(index: Index, width: int) -> Index:
    """The expression of a one-column tile over a grid of `width` axes: its partitions are the first axis."""
    if index.values is None or not 1 < index.ndim < width or math.prod(index.extents[1:]) != 1:
        return index
    return as_index(index.values.reshape(-1, *(1,) * (width - 1)))


def _expression(item: Any) -> Any:
    if isinstance(item, slice):
        return item
    if isinstance(item, TensorBase):
        values = item.known_integers()
        return as_index(values.reshape(()) if values.size == 1 else values)
    if isinstance(item, VirtualRegister):
        return as_index(item.read())
    return as_index(item)


def _slices_as_axes(tensor: TensorBase, indices: list[Any], width: int) -> tuple[list[Any], int]:
    """Slices become expressions over axes of their own, placed as NumPy places them."""
    advanced = [place for place, index in enumerate(indices) if isinstance(index, Index) and index.ndim]
    together = not advanced or advanced == list(range(advanced[0], advanced[-1] + 1))
    before = sum(isinstance(index, slice) for index in indices[: advanced[0]]) if together and advanced else 0
    total = width + sum(isinstance(index, slice) for index in indices)
    result: list[Any] = []
    slot = 0
    for axis, index in enumerate(indices):
        if isinstance(index, slice):
            start, count, step = _slice_limits(tensor, index, tensor.shape[axis], axis)
            place = slot if slot < before else slot + width
            slot += 1
            extents, steps = [1] * total, [0] * total
            extents[place], steps[place] = count, step
            result.append(Index(tuple(extents), tuple(steps), start))
        else:
            result.append(_moved(pad(index, width), before, total))
    return result, total


def _moved(index: Index, before: int, total: int) -> Index:
    after = total - before - index.ndim
    extents = (1,) * before + index.extents + (1,) * after
    if index.values is not None:
        return Index(
            extents, (0,) * total, 0, index.values.reshape((1,) * before + index.values.shape + (1,) * after)
        )
    return Index(extents, (0,) * before + index.coefficients + (0,) * after, index.offset)


def _affine_view(tensor: Own, indices: list[Index], extents: tuple[int, ...]) -> Own:
    offset = tensor.offset
    strides = [0] * len(extents)
    limits = []
    for index, stride, extent in zip(indices, tensor.strides, tensor.shape):
        offset += index.offset * stride
        for axis, (count, step) in enumerate(zip(index.extents, index.coefficients)):
            if count > 1:
                strides[axis] += step * stride
        low, high = index.limits()
        if low < 0 or high >= extent:
            steps = tuple(s if c > 1 else 0 for c, s in zip(index.extents, index.coefficients))
            limits.append((extent, index.offset, steps))
    view = tensor.placed(extents, tuple(strides), offset)
    if limits:
        view.limits = tuple(limits)
    return view


def _gathered(tensor: Own, indices: list[Index], extents: tuple[int, ...]) -> Own:
    positions: Any = np.full((1,) * len(extents), tensor.offset, np.int64)
    outside = np.zeros((1,) * len(extents), bool)
    if tensor.gather is not None:
        chosen = tuple(index.evaluate() for index in indices)
        positions = tensor.gather[chosen]
    else:
        for index, stride, extent in zip(indices, tensor.strides, tensor.shape):
            values = index.evaluate()
            outside = outside | (values < 0) | (values >= extent)
            positions = positions + values * stride
    view = tensor.placed(extents, row_major(extents), tensor.offset)
    positions = np.where(outside, -1, positions) if outside.any() else positions
    view.gather = np.broadcast_to(positions, extents)
    return view


def only_where(view: Own, chosen: npt.NDArray[np.bool_]) -> Own:
    """A view restricted to the positions that a mask leaves; only these must lie inside the tensor.

    Args:
        view: A strided view that may reach outside.
        chosen: Boolean array over its shape.

    Raises:
        OutOfBoundsError: A chosen position is outside.
    """
    chosen = np.broadcast_to(chosen, view.shape)
    for extent, base, steps in view.limits or ():
        values = _positions(view.shape, steps, base)
        reached = np.broadcast_to(values, view.shape)[chosen]
        if reached.size and (reached.min() < 0 or reached.max() >= extent):
            raise OutOfBoundsError(
                f"a masked index reaches {reached.min()} to {reached.max()}, but the dimension of tensor "
                f"{view.name!r} has {extent} elements; mask the access further",
                tracing.where(),
            )
    part = view.placed(view.shape, row_major(view.shape), view.offset)
    part.gather = np.where(chosen, _positions(view.shape, view.strides, view.offset), -1)
    return part


def scattered_where(view: Own, chosen: npt.NDArray[np.bool_]) -> Own:
    """An indirect view of the chosen positions only; the others count as out of bounds."""
    part = view.placed(view.shape, row_major(view.shape), view.offset)
    assert view.gather is not None
    part.gather = np.where(chosen, view.gather, -1)
    return part


def select_view(tensor: Own, dim: int, index: TensorBase) -> Own:
    """Positions of one dimension chosen by a tensor: shape[dim] becomes the number of indices."""
    trace = tracing.active()
    trace.needs_values()
    chosen = index_values(index)
    extent = tensor.shape[dim]
    shape = (*tensor.shape[:dim], len(chosen), *tensor.shape[dim + 1 :])
    positions = _positions((*tensor.shape[:dim], 1, *tensor.shape[dim + 1 :]), tensor.strides, tensor.offset)
    step = (1,) * dim + (len(chosen),) + (1,) * (tensor.ndim - dim - 1)
    moved = positions + (chosen * tensor.strides[dim]).reshape(step)
    inside = ((chosen >= 0) & (chosen < extent)).reshape(step)
    view = tensor.placed(shape, _gathered_strides(tensor, dim, shape), tensor.offset)
    view.gather = _left_out(moved, inside)
    return view


def indirect_view(tensor: Own, index: TensorBase, num_elem: int | None) -> Own:
    """Elements of the free dimension chosen by a tile; see `NkiTensor.indirect`.

    Raises:
        NkiValidationError: The tensor has not two dimensions, or the tile too few positions.
    """
    tracing.active().needs_values()
    partitions, columns = index.shape[0], index.size // index.shape[0]
    count = _INDIRECT_GROUP * columns if num_elem is None else num_elem
    if tensor.ndim != 2 or tensor.shape[0] != partitions or count > _INDIRECT_GROUP * columns:
        raise NkiValidationError(
            f"indirect takes a (P, F) tile and (P, K) positions for up to {_INDIRECT_GROUP} x K elements, "
            f"got {tensor.shape}, {index.shape} and {count}",
            tracing.where(),
        )
    held = index_values(index).reshape(columns, partitions).T
    rows = np.arange(partitions)[:, None] // _INDIRECT_GROUP * _INDIRECT_GROUP
    each = np.arange(count)[None, :]
    chosen = held[np.minimum(rows + each % _INDIRECT_GROUP, partitions - 1), each // _INDIRECT_GROUP]
    positions = tensor.offset + np.arange(partitions)[:, None] * tensor.strides[0]
    inside = (chosen >= 0) & (chosen < tensor.shape[1])
    view = tensor.placed((partitions, count), (tensor.strides[0], 2), tensor.offset)
    view.gather = _left_out(positions + chosen * tensor.strides[1], inside)
    return view


def _left_out(positions: Ints, inside: npt.NDArray[np.bool_]) -> Ints:
    """Positions, those that lie outside as -1; mostly none does, and another array would take as long again.

    Args:
        positions: An array of its own, of all positions.
        inside: Whether each lies inside, of a shape that broadcasts to theirs.
    """
    if not inside.all():
        np.copyto(positions, -1, where=~inside)
    return positions


def _gathered_strides(tensor: TensorBase, dim: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides that describe the runs of a gather: the inner dimensions keep theirs."""
    inner = tensor.strides[dim + 1 :]
    outer = row_major(shape)[: dim + 1]
    return tuple(step * 2 + 1 for step in outer) + inner


def _positions(shape: Sequence[int], strides: Sequence[int], offset: int) -> Ints:
    total: Any = np.full((1,) * len(shape), offset, np.int64)
    for axis, (extent, stride) in enumerate(zip(shape, strides)):
        steps = np.arange(extent, dtype=np.int64) * stride
        total = total + steps.reshape((1,) * axis + (extent,) + (1,) * (len(shape) - axis - 1))
    return np.asarray(total)


def index_values(index: TensorBase) -> Ints:
    """The indices of a tensor in the order in which DMA takes them: along the partitions first."""
    trace = tracing.active()
    index.require_integers()
    if index.region < 0:
        index.resolve()
    if index.storage is not None and not index.storage.complete:
        trace.check_read(index)
    values = index.array.reshape(index.shape[0] if index.ndim else 1, -1)
    return np.asarray(values.T.reshape(-1).astype(np.int64))


def pattern_view(
    tensor: Own,
    pattern: Sequence[Sequence[int]],
    offset: int,
    scalar_offset: Any,
    vector_offset: TensorBase | None,
    indirect_dim: int,
    dtype: Any,
) -> Own:
    """A view by access pattern; see `NkiTensor.ap`. Where it reaches outside, its first use is refused.

    Raises:
        NkiValidationError: Both offsets are given.
    """
    kind = as_dtype(dtype) if dtype is not None else tensor.dtype
    if isinstance(pattern, str) or not all(hasattr(pair, "__len__") and len(pair) == 2 for pair in pattern):
        raise NkiValidationError(
            f"ap takes a [step, count] for each dimension, got {pattern!r}", tracing.where()
        )
    shape = tuple(int(count) for _, count in pattern)
    strides, start = tuple(int(step) for step, _ in pattern), register_value(offset)
    if tensor.buffer.is_on_chip:
        strides, start = _across_partitions(tensor, kind, strides, start)
    base = tensor.offset * tensor.dtype.itemsize // kind.itemsize + start
    view = tensor.placed(shape, strides, base, kind)
    if scalar_offset is None and vector_offset is None:
        return view
    if scalar_offset is not None and vector_offset is not None:
        raise NkiValidationError("ap takes scalar_offset or vector_offset, not both", tracing.where())
    step = row_major(tensor.shape)[indirect_dim] if tensor.ndim else 1
    if scalar_offset is not None:
        if tensor.buffer.is_on_chip:
            require_32_bits(scalar_offset, "scalar_offset of a tile on chip")
        view.offset += register_value(scalar_offset) * step
        if not _is_inside(view):  # left out or refused by the DMA, as its oob_mode says
            view.gather = np.full(view.shape, -1, np.int64)
        return view
    assert vector_offset is not None
    tracing.active().needs_values()
    return _vector_pattern(tensor, view, index_values(vector_offset), indirect_dim, step)


def _across_partitions(tensor: TensorBase, kind: DType, strides: Shape, start: int) -> tuple[Shape, int]:
    """A pattern on a part of each partition, in elements of the tile.

    The first step leads from one partition to the next: it is the number of elements that the tensor has in
    each ("Restriction on SBUF/PSUM Tensors", NKI Access Patterns), of a part as many as the part has.
    """
    own = math.prod(tensor.shape[1:]) * tensor.dtype.itemsize // kind.itemsize
    pitch = tensor.backing.pitch_bytes // kind.itemsize
    if own == pitch or not strides or strides[0] != own:
        return strides, start
    partition, element = divmod(start, own)
    return (pitch, *strides[1:]), partition * pitch + element


def _vector_pattern(tensor: Own, view: Own, chosen: Ints, indirect_dim: int, step: int) -> Own:
    """One index per position of the pattern's first dimension, which it replaces."""
    count = view.shape[0]
    if len(chosen) < count:
        raise NkiValidationError(
            f"vector_offset has {len(chosen)} indices for {count} positions of the pattern", tracing.where()
        )
    chosen = chosen[:count]
    inner = _positions((1, *view.shape[1:]), view.strides, view.offset)
    lead = (count,) + (1,) * (len(view.shape) - 1)
    limit = tensor.shape[indirect_dim] if tensor.ndim else 1
    inside = ((chosen >= 0) & (chosen < limit)).reshape(lead)
    view.gather = _left_out(inner + (chosen * step).reshape(lead), inside)
    view.strides = (2 * max(step, 1) + 1, *view.strides[1:])
    return view


def _reach(view: TensorBase) -> tuple[int, int]:
    """Last element that a view reaches, and elements of its storage."""
    reach = sum((extent - 1) * stride for extent, stride in zip(view.shape, view.strides))
    storage = view.backing
    return view.offset + reach, storage.lines * storage.pitch_bytes // view.dtype.itemsize


def _is_inside(view: TensorBase) -> bool:
    last, size = _reach(view)
    return not view.size or (view.offset >= 0 and last < size)
