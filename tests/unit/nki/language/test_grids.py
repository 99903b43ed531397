"""Grids of tiles and blocks over tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.errors import NkiValidationError, OutOfBoundsError
from tests.unit.nki.kernels import floats, run_raw

A = floats(300, 600)


def copy_tiles(x):
    """A copy of x, tile by tile."""
    source = nl.tiles(x, tile_shape=(128, 256))
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    target = nl.tiles(result, tile_shape=(128, 256))
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            tile = nl.ndarray(source[i, j].element_shape, dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile.data, src=source[i, j].data)
            nisa.dma_copy(dst=target[i, j].data, src=tile.data)
    return result


def copy_blocks(x):
    """A copy of x, block by block, each loaded tile by tile into storage that lies in tiles."""
    shapes: dict[str, Any] = {"tile_shape": (128, 256), "block_shape": (1, 2)}
    source = nl.blocks(x, **shapes)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    target = nl.blocks(result, **shapes)
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            block = source[i, j]
            held = nl.alloc_blocks(**shapes, element_shape=block.element_shape, buffer=nl.sbuf, dtype=x.dtype)
            inner, outer = nl.tiles(held), nl.tiles(block)
            for t in range(inner.shape[1]):
                nisa.dma_copy(dst=inner[0, t].data, src=outer[0, t].data)
            nisa.dma_copy(dst=target[i, j].data, src=held[0, 0].data)
    return result


@pytest.mark.parametrize("kernel", [copy_tiles, copy_blocks])
def test_grids_reach_every_element_once_smaller_tiles_at_the_end_included(kernel: Callable[..., Any]):
    assert np.array_equal(run_raw(kernel, A).outputs, A)


def looked_at(look: Callable[[Any], Any], array: np.ndarray = A) -> Any:
    """What `look` finds of a kernel's argument."""
    found: list[Any] = []

    def kernel(x):
        found.append(look(x))
        return x

    run_raw(kernel, array)
    return found[0]


def test_a_grid_counts_tiles_and_a_block_grid_blocks():
    def look(x):
        grid = nl.tiles(x, tile_shape=(128, 256))
        group = nl.blocks(grid, block_shape=(2, 2))
        return (
            (grid.shape, grid[2, 1:].shape, grid[2, 1:].element_shape, grid[2, 1:].index_step_elements),
            (grid.is_remainder, grid[0, 0].is_remainder),
            (group.shape, group.index_step_elements, group[0, 1].element_shape, nl.tiles(group[0, 0]).shape),
            (grid.dtype, grid.buffer, isinstance(group, nl.NkiGrid)),
        )

    tiles, remainder, blocks, rest = looked_at(look)
    assert tiles == ((3, 3), (2,), (44, 344), (256,))
    assert remainder == (True, False)
    assert blocks == ((2, 2), (256, 512), (256, 88), (2, 2))
    assert rest == (nl.float32, nl.shared_hbm, True) or rest[1] in (nl.hbm, nl.private_hbm)


def test_dimensions_before_the_tiles_are_taken_one_slab_at_a_time():
    slabs = floats(2, 128, 64)
    found = looked_at(lambda x: nl.tiles(x, tile_shape=(128, 32))[1, 0, 1].data, slabs)
    assert found.shape == (128, 32)
    assert np.array_equal(found.array, slabs[1, :, 32:])


def test_storage_on_chip_lies_tile_after_tile():
    def look(x):
        grid = nl.alloc_tiles(tile_shape=(128, 32), element_shape=(256, 80), buffer=nl.sbuf, dtype=nl.float32)
        row = grid[1, :]
        return grid[1, 2].data.shape, row.data.shape, row.data.strides, grid.is_data_representable

    assert looked_at(look) == ((128, 16), (128, 80), (192, 1), False)


MISTAKES = {
    "a coordinate outside": (OutOfBoundsError, "grid of 3", lambda x: nl.tiles(x, tile_shape=(128, 256))[3]),
    "a step": (NkiValidationError, "without a step", lambda x: nl.tiles(x, tile_shape=(128, 256))[::2]),
    "too many tile dimensions": (
        NkiValidationError,
        "more dimensions",
        lambda x: nl.tiles(x, tile_shape=(1, 2, 3)),
    ),
    "no tile shape": (NkiValidationError, "takes a tuple", lambda x: nl.tiles(x)),
    "a count too few": (
        NkiValidationError,
        "one count for each",
        lambda x: nl.blocks(x, tile_shape=(128, 256), block_shape=(2,)),
    ),
    "tiles of two rows at once": (
        NkiValidationError,
        "no single access pattern",
        lambda x: (
            nl.alloc_tiles(
                tile_shape=(128, 32), element_shape=(256, 64), buffer=nl.sbuf, dtype=nl.float32
            ).data
        ),
    ),
    "other tiles than the storage's": (
        NkiValidationError,
        "cannot be seen in tiles",
        lambda x: nl.tiles(
            nl.alloc_tiles(tile_shape=(128, 32), element_shape=(128, 64), buffer=nl.sbuf, dtype=nl.float32),
            tile_shape=(128, 16),
        ),
    ),
    "no tensor": (NkiValidationError, "over a tensor or a grid, not tuple", lambda x: nl.tiles(x.shape)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_refused_in_a_sentence(name: str):
    kind, message, look = MISTAKES[name]
    with pytest.raises(kind, match=message):
        looked_at(look)
