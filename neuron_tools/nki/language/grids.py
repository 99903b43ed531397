"""Grids over tensors (NKI 0.7): `nl.tiles` and `nl.blocks` address parts of a tensor by tile or by block.

A grid is a view: making, indexing or regrouping one stores nothing and emits nothing. `grid[i, j]` is a grid
again; its `data` is the tensor that an instruction takes. `nl.alloc_tiles` and `nl.alloc_blocks` declare
storage of their own, on chip one tile after the other along the free dimension.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from neuron_tools.frozen import frozen
from neuron_tools.nki import tracer as tracing
from neuron_tools.nki.dtypes import DType
from neuron_tools.nki.errors import NkiValidationError, OutOfBoundsError
from neuron_tools.nki.language.creation import ndarray
from neuron_tools.nki.memory_region import MemoryRegion
from neuron_tools.nki.registers import register_value
from neuron_tools.nki.tensor import NkiTensor

Shape = tuple[int, ...]


@frozen
class Span:
    """What a grid selects along one dimension of its tensor.

    Attributes:
        start: First element.
        extent: Elements.
        step: Elements from one coordinate to the next; 1 where the dimension is not tiled.
        fixed: Whether an integer has chosen the coordinate.
    """

    start: int
    extent: int
    step: int
    fixed: bool = False

    @property
    def count(self) -> int:
        """Coordinates; the last may stand for fewer elements than `step`."""
        return -(-self.extent // self.step)

    def chosen(self, key: Any) -> Span:
        """The part at one coordinate, or at the coordinates of a slice.

        Raises:
            OutOfBoundsError: It is outside.
            NkiValidationError: The slice leaves coordinates out.
        """
        if not isinstance(key, slice):
            at = int(register_value(key))
            at += self.count if at < 0 else 0
            return self._part(at, at + 1, fixed=True)
        if key.step not in (None, 1):
            raise NkiValidationError(
                f"a grid takes slices without a step, got {key.step}; loop over the coordinates",
                tracing.where(),
            )
        first, last, _ = key.indices(self.count)
        return self._part(first, max(first, last), fixed=False)

    def _part(self, first: int, last: int, fixed: bool) -> Span:
        if not 0 <= first < last <= self.count:
            raise OutOfBoundsError(
                f"the coordinates {first} to {last - 1} reach outside a grid of {self.count}", tracing.where()
            )
        stop = min(last * self.step, self.extent)
        return Span(self.start + first * self.step, stop - first * self.step, self.step, fixed)


class Backing(Protocol):
    """Where a grid's elements lie."""

    @property
    def dtype(self) -> DType:
        """Their element type."""

    @property
    def region(self) -> MemoryRegion:
        """The memory they lie in."""

    def view(self, spans: Sequence[Span]) -> NkiTensor | None:
        """The elements of a selection as one tensor; None where no access pattern reaches them."""


@frozen
class _Held:
    """Elements of one tensor."""

    tensor: NkiTensor

    @property
    def dtype(self) -> DType:
        """Their element type."""
        return self.tensor.dtype

    @property
    def region(self) -> MemoryRegion:
        """The memory they lie in."""
        return self.tensor.buffer


@frozen
class TensorBacking(_Held):
    """A tensor that the kernel declared, or an argument."""

    def view(self, spans: Sequence[Span]) -> NkiTensor:
        """The elements between the spans' bounds; an untiled dimension whose slab is chosen disappears."""
        return self.tensor[
            tuple(
                span.start if span.fixed and span.step == 1 else slice(span.start, span.start + span.extent)
                for span in spans
            )
        ]


@frozen
class TileBacking(_Held):
    """Tiles on chip, one after the other along the free dimension.

    Attributes:
        tensor: (partitions of a tile, tiles, free dimensions of a tile).
        counts: Tiles along each dimension.
        tile_shape: Elements of a tile.
    """

    counts: Shape
    tile_shape: Shape

    def view(self, spans: Sequence[Span]) -> NkiTensor | None:
        """One tile, or neighbours along the last dimension of tiles of two dimensions."""
        first = [span.start // extent for span, extent in zip(spans, self.tile_shape)]
        last = [(span.start + span.extent - 1) // extent for span, extent in zip(spans, self.tile_shape)]
        number = sum(at * step for at, step in zip(first, _steps(self.counts)))
        limits = [slice(0, span.extent) for span in spans]
        if first == last:
            place = (limits[0], number, *limits[1:])
            return self.tensor[place]
        if first[:-1] != last[:-1] or len(self.tile_shape) != 2:
            return None
        neighbours = self.tensor[limits[0], number : number + last[-1] - first[-1] + 1]
        return neighbours.flatten_dims(1, 2)[:, limits[1]]


def _steps(counts: Shape) -> Shape:
    return tuple(math.prod(counts[at + 1 :]) for at in range(len(counts)))


class NkiGrid:
    """A tensor seen in tile or block coordinates; made by `nl.tiles`, `nl.blocks` and their `alloc_`.

    Attributes:
        tile_shape: Elements of a whole tile, for each tiled dimension.
    """

    def __init__(self, backing: Backing, spans: Sequence[Span], tile_shape: Shape) -> None:
        self._backing = backing
        self._spans = tuple(spans)
        self.tile_shape = tile_shape

    @property
    def shape(self) -> Shape:
        """Coordinates of each dimension that no integer has chosen; untiled ones lead."""
        return tuple(span.count for span in self._spans if not span.fixed)

    @property
    def element_shape(self) -> Shape:
        """Elements along each dimension of `data`."""
        return tuple(span.extent for span in self._spans if not (span.fixed and span.step == 1))

    @property
    def index_step_elements(self) -> Shape:
        """Elements from one coordinate to the next, of each dimension of `shape`."""
        return tuple(span.step for span in self._spans if not span.fixed)

    @property
    def dtype(self) -> DType:
        """The tensor's element type."""
        return self._backing.dtype

    @property
    def buffer(self) -> MemoryRegion:
        """The memory it lies in."""
        return self._backing.region

    @property
    def is_remainder(self) -> bool:
        """Whether the selection ends within a tile."""
        tiled = self._spans[len(self._spans) - len(self.tile_shape) :]
        return any(span.extent % extent for span, extent in zip(tiled, self.tile_shape))

    @property
    def is_data_representable(self) -> bool:
        """Whether one access pattern reaches all of the selection."""
        return self._backing.view(self._spans) is not None

    @property
    def data(self) -> NkiTensor:
        """The selection as the operand of an instruction.

        Raises:
            NkiValidationError: No single access pattern reaches it.
        """
        found = self._backing.view(self._spans)
        if found is None:
            raise NkiValidationError(
                f"no single access pattern reaches {self.element_shape} elements in tiles of "
                f"{self.tile_shape} on chip; take fewer tiles at a time, e.g. those of one row",
                tracing.where(),
            )
        return found

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        free = [at for at, span in enumerate(self._spans) if not span.fixed]
        if Ellipsis in keys:
            at = keys.index(Ellipsis)
            keys = (*keys[:at], *(slice(None),) * (len(free) - len(keys) + 1), *keys[at + 1 :])
        if len(keys) > len(free):
            raise OutOfBoundsError(
                f"a grid of shape {self.shape} has no {len(keys)} dimensions", tracing.where()
            )
        spans = list(self._spans)
        for at, chosen in zip(free, keys):
            spans[at] = spans[at].chosen(chosen)
        return self._with(spans)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, tile_shape={self.tile_shape}, dtype={self.dtype})"

    def _with(self, spans: Sequence[Span]) -> NkiGrid:
        raise NotImplementedError

    def regrouped(self, steps: Shape) -> list[Span]:
        """The spans of what is selected, with other steps for the tiled dimensions and none chosen there."""
        lead = len(self._spans) - len(steps)
        tiled = [replace(s, step=step, fixed=False) for s, step in zip(self._spans[lead:], steps)]
        return [*self._spans[:lead], *tiled]


class NkiTileGrid(NkiGrid):
    """A tensor seen in tile coordinates."""

    def _with(self, spans: Sequence[Span]) -> NkiTileGrid:
        return NkiTileGrid(self._backing, spans, self.tile_shape)


class NkiBlockGrid(NkiGrid):
    """A tensor seen in coordinates of blocks of tiles.

    Attributes:
        block_shape: Tiles of a whole block, for each tiled dimension.
    """

    def __init__(
        self, backing: Backing, spans: Sequence[Span], tile_shape: Shape, block_shape: Shape
    ) -> None:
        super().__init__(backing, spans, tile_shape)
        self.block_shape = block_shape

    def _with(self, spans: Sequence[Span]) -> NkiBlockGrid:
        return NkiBlockGrid(self._backing, spans, self.tile_shape, self.block_shape)


def tiles(source: NkiTensor | NkiGrid, *, tile_shape: Shape | None = None) -> NkiTileGrid:
    """A tensor in tile coordinates; the tiles at its end may be smaller.

    Args:
        source: A tensor, or a grid or part of one to see in tiles.
        tile_shape: Elements of a tile along the last dimensions; of a grid by default its own.

    Raises:
        NkiValidationError: The shape does not fit the tensor.
    """
    if not isinstance(source, (NkiTensor, NkiGrid)):
        raise NkiValidationError(
            f"a grid is made over a tensor or a grid, not {type(source).__name__}", tracing.where()
        )
    own = source.tile_shape if isinstance(source, NkiGrid) else None
    shape = _checked("tile_shape", own if tile_shape is None else tile_shape, 1)
    if isinstance(source, NkiGrid):
        _check_regrouping(source, shape)
        return NkiTileGrid(source._backing, source.regrouped(shape), shape)
    return NkiTileGrid(TensorBacking(source), _spans(source.shape, shape), shape)


def blocks(
    source: NkiTensor | NkiGrid, *, tile_shape: Shape | None = None, block_shape: Shape
) -> NkiBlockGrid:
    """A tensor in coordinates of blocks of tiles; the blocks at its end may be smaller.

    Args:
        source: A tensor, or a grid or part of one to see in blocks.
        tile_shape: Elements of a tile along the last dimensions; of a grid by default its own.
        block_shape: Tiles of a block along the same dimensions.

    Raises:
        NkiValidationError: The shapes do not fit the tensor or each other.
    """
    inner = tiles(source, tile_shape=tile_shape)
    wanted = _checked("block_shape", block_shape, 1)
    if len(wanted) != len(inner.tile_shape):
        raise NkiValidationError(
            f"block_shape {wanted} counts tiles along the {len(inner.tile_shape)} dimensions of tile_shape "
            f"{inner.tile_shape}; give one count for each",
            tracing.where(),
        )
    steps = tuple(tile * count for tile, count in zip(inner.tile_shape, wanted))
    return NkiBlockGrid(inner._backing, inner.regrouped(steps), inner.tile_shape, wanted)


def alloc_tiles(
    *,
    tile_shape: Shape,
    element_shape: Shape,
    buffer: Any,
    dtype: Any,
    address: tuple[int, int] | None = None,
    name: str = "",
) -> NkiTileGrid:
    """Declare storage as a grid of tiles; it holds nothing yet.

    Args:
        tile_shape: Elements of a tile, two dimensions or more.
        element_shape: Elements of the whole, whose last dimensions are tiled.
        buffer: `nl.sbuf`, `nl.psum`, `nl.shared_hbm`, ...; on chip all dimensions are tiled.
        dtype: Element type.
        address: (partition, byte) where the kernel wants it.
        name: Name in messages and the profile.

    Raises:
        NkiValidationError: The shapes do not fit each other or the memory.
    """
    tile, whole = (
        _checked("tile_shape", tile_shape, 2),
        _checked("element_shape", element_shape, len(tile_shape)),
    )
    spans = _spans(whole, tile)
    if buffer not in (MemoryRegion.sbuf, MemoryRegion.psum):
        return tiles(ndarray(whole, dtype, buffer, name, address), tile_shape=tile)
    if len(whole) != len(tile):
        raise NkiValidationError(
            f"on chip every dimension is tiled, but element_shape {whole} has {len(whole)} and tile_shape "
            f"{tile} {len(tile)}",
            tracing.where(),
        )
    counts = tuple(span.count for span in spans)
    storage = ndarray((tile[0], math.prod(counts), *tile[1:]), dtype, buffer, name, address)
    return NkiTileGrid(TileBacking(storage, counts, tile), spans, tile)


def alloc_blocks(
    *,
    tile_shape: Shape,
    block_shape: Shape,
    element_shape: Shape,
    buffer: Any,
    dtype: Any,
    address: tuple[int, int] | None = None,
    name: str = "",
) -> NkiBlockGrid:
    """Declare storage as `alloc_tiles` does, in coordinates of blocks of `block_shape` tiles."""
    grid = alloc_tiles(
        tile_shape=tile_shape, element_shape=element_shape, buffer=buffer, dtype=dtype, address=address,
        name=name,
    )  # fmt: skip
    return blocks(grid, block_shape=block_shape)


def _spans(extents: Shape, tile_shape: Shape) -> list[Span]:
    lead = len(extents) - len(tile_shape)
    if lead < 0:
        raise NkiValidationError(
            f"tile_shape {tile_shape} has more dimensions than the tensor of shape {extents}", tracing.where()
        )
    return [Span(0, extent, step) for extent, step in zip(extents, (*(1,) * lead, *tile_shape))]


def _checked(name: str, shape: Any, least: int) -> Shape:
    """A shape of positive integers.

    Raises:
        NkiValidationError: It is none, or has fewer than `least` dimensions.
    """
    if isinstance(shape, tuple) and len(shape) >= least and all(type(n) is int and n > 0 for n in shape):
        return shape
    raise NkiValidationError(
        f"{name} takes a tuple of {least} or more positive integers, got {shape!r}", tracing.where()
    )


def _check_regrouping(grid: NkiGrid, shape: Shape) -> None:
    """Refuse other tiles than those in which storage on chip lies."""
    if isinstance(grid._backing, TileBacking) and shape != grid._backing.tile_shape:
        raise NkiValidationError(
            f"storage that lies in tiles of {grid._backing.tile_shape} cannot be seen in tiles of {shape}; "
            "allocate it in those",
            tracing.where(),
        )
    if len(shape) > len(grid._spans):
        raise NkiValidationError(f"tile_shape {shape} has more dimensions than the grid", tracing.where())
