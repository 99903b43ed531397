"""A matrix product in four stages: from loads in the innermost loop to operands that stay on chip.

neuron-profile capture -- python examples/nki/matmul.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import ml_dtypes
import numpy as np

from neuron_tools import compat

compat.install()
sys.path.insert(0, str(Path(__file__).parent))

import nki
import nki.isa as nisa
import nki.language as nl
from report import compare

ROWS, COLUMNS, DEPTH = 128, 512, 128
"""A tile of the product, and how much of the contraction one matmul instruction covers."""


def load(source, rows, columns):
    """A tile in SBUF with a part of a matrix in HBM."""
    tile = nl.ndarray(
        (rows.stop - rows.start, columns.stop - columns.start), dtype=source.dtype, buffer=nl.sbuf
    )
    nisa.dma_copy(dst=tile, src=source[rows, columns])
    return tile


def store(result, total, m, n, engine=nisa.vector_engine):
    """Copy a finished tile from PSUM through SBUF to HBM."""
    width = total.shape[1]
    staged = nl.ndarray(total.shape, dtype=result.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=staged, src=total, engine=engine)
    nisa.dma_copy(dst=result[m * ROWS : (m + 1) * ROWS, n * width : (n + 1) * width], src=staged)


@nki.jit
def matmul_naive(lhs_t, rhs):
    """Stage 1: both operands are loaded where they are used, again and again."""
    depth, rows = lhs_t.shape
    columns = rhs.shape[1]
    result = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    for m in range(rows // ROWS):
        for n in range(columns // COLUMNS):
            total = nl.ndarray((ROWS, COLUMNS), dtype=nl.float32, buffer=nl.psum)
            for k in range(depth // DEPTH):
                part = slice(k * DEPTH, (k + 1) * DEPTH)
                left = load(lhs_t, part, slice(m * ROWS, (m + 1) * ROWS))
                right = load(rhs, part, slice(n * COLUMNS, (n + 1) * COLUMNS))
                nisa.nc_matmul(dst=total, stationary=left, moving=right)
            store(result, total, m, n)
    return result


@nki.jit
def matmul_hoisted(lhs_t, rhs):
    """Stage 2: the left operand's tiles are loaded once for each row of tiles of the product."""
    depth, rows = lhs_t.shape
    columns = rhs.shape[1]
    result = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    parts = [slice(k * DEPTH, (k + 1) * DEPTH) for k in range(depth // DEPTH)]
    for m in range(rows // ROWS):
        left = [load(lhs_t, part, slice(m * ROWS, (m + 1) * ROWS)) for part in parts]
        for n in range(columns // COLUMNS):
            total = nl.ndarray((ROWS, COLUMNS), dtype=nl.float32, buffer=nl.psum)
            for k, part in enumerate(parts):
                right = load(rhs, part, slice(n * COLUMNS, (n + 1) * COLUMNS))
                nisa.nc_matmul(dst=total, stationary=left[k], moving=right)
            store(result, total, m, n)
    return result


@nki.jit
def matmul_blocked(lhs_t, rhs):
    """Stage 3: the right operand is loaded once, in rows as wide as it is; it stays in SBUF."""
    depth, rows = lhs_t.shape
    columns = rhs.shape[1]
    result = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    parts = [slice(k * DEPTH, (k + 1) * DEPTH) for k in range(depth // DEPTH)]
    right = [load(rhs, part, slice(0, columns)) for part in parts]
    for m in range(rows // ROWS):
        left = [load(lhs_t, part, slice(m * ROWS, (m + 1) * ROWS)) for part in parts]
        for n in range(columns // COLUMNS):
            total = nl.ndarray((ROWS, COLUMNS), dtype=nl.float32, buffer=nl.psum)
            for k in range(len(parts)):
                nisa.nc_matmul(
                    dst=total, stationary=left[k], moving=right[k][:, n * COLUMNS : (n + 1) * COLUMNS]
                )
            store(result, total, m, n)
    return result


@nki.jit
def matmul_resident(lhs_t, rhs):
    """Stage 4: both operands are loaded once, in wide rows; Vector and Scalar take turns to empty PSUM."""
    depth, rows = lhs_t.shape
    columns = rhs.shape[1]
    result = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    parts = [slice(k * DEPTH, (k + 1) * DEPTH) for k in range(depth // DEPTH)]
    left, right = [], []
    for part in parts:
        left.append(load(lhs_t, part, slice(0, rows)))
        right.append(load(rhs, part, slice(0, columns)))
    engines = (nisa.vector_engine, nisa.scalar_engine)
    for m in range(rows // ROWS):
        for n in range(columns // COLUMNS):
            total = nl.ndarray((ROWS, COLUMNS), dtype=nl.float32, buffer=nl.psum)
            for k in range(len(parts)):
                nisa.nc_matmul(
                    dst=total,
                    stationary=left[k][:, m * ROWS : (m + 1) * ROWS],
                    moving=right[k][:, n * COLUMNS : (n + 1) * COLUMNS],
                )
            store(result, total, m, n, engines[n % 2])
    return result


@nki.jit
def matmul_tunable(
    lhs_t,
    rhs,
    *,
    width: Literal[128, 256, 512] = 512,
    left: Literal["tile", "block", "all"] = "tile",
    right: Literal["tile", "block", "all"] = "tile",
    columns_first: Literal[False, True] = False,
    emptied_by: Literal["vector", "scalar", "both"] = "vector",
):
    """For `neuron-profile tune`: how wide tiles are, which operands stay on chip, who empties PSUM.

    An operand is loaded by the "tile" where it is used, by the "block" of its row of tiles, or "all" at once.
    """
    depth, rows = lhs_t.shape
    columns = rhs.shape[1]
    result = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    parts = [slice(k * DEPTH, (k + 1) * DEPTH) for k in range(depth // DEPTH)]
    lefts = Operand(lhs_t, parts, left, ROWS)
    rights = Operand(rhs, parts, right, width)
    engines = {"vector": [nisa.vector_engine], "scalar": [nisa.scalar_engine]}
    engines["both"] = engines["vector"] + engines["scalar"]
    tiles = [(m, n) for m in range(rows // ROWS) for n in range(columns // width)]
    for number, (m, n) in enumerate(sorted(tiles, key=lambda tile: tile[::-1]) if columns_first else tiles):
        total = nl.ndarray((ROWS, width), dtype=nl.float32, buffer=nl.psum)
        for k in range(len(parts)):
            nisa.nc_matmul(dst=total, stationary=lefts.tile(k, m), moving=rights.tile(k, n))
        store(result, total, m, n, engines[emptied_by][number % len(engines[emptied_by])])
    return result


class Operand:
    """A matrix whose tiles are loaded when they are used, with their block of columns, or all at once."""

    def __init__(self, source, parts, kept, width):
        self.source, self.parts, self.kept, self.width = source, parts, kept, width
        self.blocks, self.block = {}, None

    def tile(self, k, number):
        """The tile of part `k` of the depth and block `number` of columns."""
        columns = slice(number * self.width, (number + 1) * self.width)
        if self.kept == "tile":
            return load(self.source, self.parts[k], columns)
        if self.kept == "block":
            if self.block != number:
                self.block, self.blocks = number, {}
            if k not in self.blocks:
                self.blocks[k] = load(self.source, self.parts[k], columns)
            return self.blocks[k]
        if k not in self.blocks:
            self.blocks[k] = load(self.source, self.parts[k], slice(0, self.source.shape[1]))
        return self.blocks[k][:, columns]


def inputs():
    """Two matrices."""
    random = np.random.default_rng(0)
    return tuple(random.standard_normal((1024, 1024)).astype(ml_dtypes.bfloat16) for _ in range(2))


if __name__ == "__main__":
    a, b = inputs()
    expected = a.astype(np.float32).T @ b.astype(np.float32)
    compare([matmul_naive, matmul_hoisted, matmul_blocked, matmul_resident], (a, b), expected, 1e-2)
    matmul_resident(a, b)
