"""Strides of views: row-major order, reshaping and merging without a copy."""

from __future__ import annotations

import itertools
import math

Shape = tuple[int, ...]


def row_major(shape: Shape) -> Shape:
    """Strides, in elements, of a dense array of this shape."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def tile_layout(shape: list[int], strides: list[int]) -> tuple[list[int], list[int]]:
    """Shape and strides with dimensions of size 1 at the end: partitions and a free dimension."""
    missing = 2 - len(shape)
    return shape + [1] * missing, strides + [1] * missing


def merge_strides(shape: Shape, strides: Shape) -> tuple[int, int] | None:
    """(extent, stride) of neighbouring dimensions merged into one; None where they do not lie together."""
    pairs = [(extent, stride) for extent, stride in zip(shape, strides) if extent != 1]
    if not pairs:
        return 1, 1
    for (_, outer), (extent, inner) in itertools.pairwise(pairs):
        if outer != extent * inner:
            return None
    return math.prod(extent for extent, _ in pairs), pairs[-1][1]


def reshape_strides(shape: Shape, strides: Shape, wanted: Shape) -> Shape | None:
    """Strides of `wanted` over the elements of a view in order; None where a copy would be needed.

    Both shapes must have the same size.
    """
    old = [(extent, stride) for extent, stride in zip(shape, strides) if extent != 1]
    new: list[int] = []
    at = 0
    position = 0
    while position < len(wanted):
        if wanted[position] == 1:
            new.append(0 if at >= len(old) else old[at][1])
            position += 1
            continue
        if at >= len(old):
            return None
        first, size = position, wanted[position]
        start, have = at, old[at][0]
        while size != have:
            if size < have:
                position += 1
                if position >= len(wanted):
                    return None
                size *= wanted[position]
            else:
                at += 1
                if at >= len(old):
                    return None
                have *= old[at][0]
        merged = merge_strides(
            tuple(e for e, _ in old[start : at + 1]), tuple(s for _, s in old[start : at + 1])
        )
        if merged is None:
            return None
        new.extend(step * merged[1] for step in row_major(wanted[first : position + 1]))
        at += 1
        position += 1
    return tuple(new)
