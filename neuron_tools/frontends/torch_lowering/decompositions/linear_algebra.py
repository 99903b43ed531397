"""Triangular systems by products of blocks, not a step for each row, and Cholesky factors by columns."""

from __future__ import annotations

from typing import Any

import torch

from neuron_tools.frontends.torch_lowering.decompositions.registry import decomposes

_aten = torch.ops.aten

LARGEST_FACTOR = 128
"""Rows of the largest matrix that is factored: every column takes operations of its own."""
_WHOLE_BLOCK = 128
"""Rows of blocks that are inverted by products of whole blocks: what the PE array takes at once."""


@decomposes(_aten.linalg_solve_triangular.default)
def _solve_triangular(
    matrix: Any, right: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    inverse = _triangular_inverse(matrix, upper=upper, unitriangular=unitriangular)
    return torch.matmul(inverse, right) if left else torch.matmul(right, inverse)


@decomposes(_aten.triangular_solve.default)
def _old_solve_triangular(
    right: Any, matrix: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Any, Any]:
    inverse = _triangular_inverse(matrix, upper=upper, unitriangular=unitriangular)
    return torch.matmul(inverse.mT if transpose else inverse, right), matrix.clone()


def _triangular_inverse(matrix: Any, *, upper: bool, unitriangular: bool) -> Any:
    """By blocks of twice the size each time: [[A, 0], [C, B]] has -B' C A' below the inverses A' and B'."""
    if upper:
        return _triangular_inverse(matrix.mT, upper=False, unitriangular=unitriangular).mT
    rows = matrix.shape[-1]
    extent = 1 << (rows - 1).bit_length()
    padded = _aten.constant_pad_nd(matrix, [0, extent - rows, 0, extent - rows])
    size = min(extent, _WHOLE_BLOCK)
    inverse = _inverses_of_blocks(_diagonal_blocks(padded, size), 0 if unitriangular else rows)
    while size < extent:
        below = _diagonal_blocks(padded, 2 * size)[..., size:, :size]
        first, second = inverse[..., 0::2, :, :], inverse[..., 1::2, :, :]
        corner = -torch.matmul(torch.matmul(second, below), first)
        above = torch.cat([first, torch.zeros_like(first)], -1)
        inverse = torch.cat([above, torch.cat([corner, second], -1)], -2)
        size *= 2
    return inverse[..., 0, :rows, :rows]


def _diagonal_blocks(matrix: Any, size: int) -> Any:
    """[..., blocks, size, size]: the blocks on a matrix's diagonal."""
    count = matrix.shape[-1] // size
    if count == 1:
        return matrix.unsqueeze(-3)
    blocks = matrix.reshape(*matrix.shape[:-2], count, size, count, size)
    return torch.diagonal(blocks, dim1=-4, dim2=-2).movedim(-1, -3)


def _inverses_of_blocks(blocks: Any, counted: int) -> Any:
    """Inverses of lower triangles, all blocks of a size at once in products of whole blocks.

    Args:
        blocks: [..., blocks, size, size].
        counted: How many elements of the whole diagonal count; those after it stand for 1.
    """
    count, size = blocks.shape[-3], blocks.shape[-1]
    row, column = torch.arange(size).unsqueeze(1), torch.arange(size)
    places = torch.arange(count)[:, None, None] * size + row
    on_diagonal = row == column
    inverse = torch.where(on_diagonal, torch.where(places < counted, 1 / blocks, 1.0), 0.0)
    half = 1
    while half < size:
        is_below = ((row ^ column) & -half) == half
        below = torch.where(is_below & (row > column), blocks, 0.0)
        inverse = inverse - torch.matmul(torch.matmul(inverse, below), inverse)
        half *= 2
    return inverse


@decomposes(_aten.linalg_cholesky_ex.default)
def _cholesky(matrix: Any, *, upper: bool = False, check_errors: bool = False) -> tuple[Any, Any]:
    """The factor, and 0 for each matrix: whether one is not positive is found by its values."""
    extent = matrix.shape[-1]
    if extent > LARGEST_FACTOR:
        raise NotImplementedError("a large matrix is not factored")
    rest, columns, row = (matrix.mT if upper else matrix), [], torch.arange(extent).unsqueeze(1)
    for place in range(extent):
        pivot = rest[..., place : place + 1, place : place + 1]
        column = torch.where(row >= place, rest[..., place : place + 1] * torch.rsqrt(pivot), 0.0)
        columns.append(column)
        rest = rest - column * column.mT
    factor = torch.cat(columns, -1)
    info = torch.zeros(matrix.shape[:-2], dtype=torch.int32)
    return factor.mT if upper else factor, info
