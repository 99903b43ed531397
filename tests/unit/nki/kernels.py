"""Small kernels for tests: run a few instructions on arrays and give back what they wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuron_tools import hardware
from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.dtypes import as_dtype
from neuron_tools.nki.kernel import Kernel


def on_chip(array, dtype=None, buffer=nl.sbuf):
    """A tile with the array's elements."""
    tile = nl.ndarray(array.shape, dtype=array.dtype, buffer=nl.sbuf)
    nisa.dma_copy(tile, array)
    if buffer is nl.sbuf and (dtype is None or as_dtype(dtype) is array.dtype):
        return tile
    moved = nl.ndarray(array.shape, dtype=dtype or array.dtype, buffer=buffer)
    nisa.tensor_copy(moved, tile)
    return moved


def to_hbm(tile):
    """A tensor in HBM with the tile's elements."""
    if tile.buffer is nl.psum:
        staged = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(staged, tile)
        tile = staged
    result = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(result, tile)
    return result


def run(body: Callable[..., Any], *arrays: Any, target: str = "trn2", older: bool = False, **keywords: Any):
    """Run a kernel body on arrays: each becomes a tile; the tile (or tiles) returned come back as arrays."""

    def kernel(*inputs):
        tiles = [on_chip(x) if hasattr(x, "shape") else x for x in inputs]
        result = body(*tiles, **keywords)
        if isinstance(result, tuple):
            return tuple(to_hbm(tile) for tile in result)
        return to_hbm(result)

    return Kernel(kernel, core=hardware.get(target), older_dialect=older).run(*arrays).outputs


def run_raw(body: Callable[..., Any], *arrays: Any, target: str = "trn2", older: bool = False, grid=()):
    """Run a kernel as it is: arrays become tensors in HBM."""
    return Kernel(body, core=hardware.get(target), older_dialect=older, grid=grid).run(*arrays)


def tile(shape, dtype=nl.float32, buffer=nl.sbuf):
    """An empty tile."""
    return nl.ndarray(shape, dtype=dtype, buffer=buffer)


def floats(*shape: int, seed: int = 0, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Reproducible fp32 numbers."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


def integers(*shape: int, seed: int = 0, high: int = 100, dtype=np.int32) -> np.ndarray:
    """Reproducible integers."""
    return np.random.default_rng(seed).integers(0, high, shape).astype(dtype)
