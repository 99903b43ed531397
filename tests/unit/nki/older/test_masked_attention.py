"""Block-causal attention as kernels of the older dialect write it: number masks, two-dimensional tiles."""

from __future__ import annotations

import numpy as np
import pytest

from neuron_tools.compat.neuronxcc.nki import isa as nisa, language as nl
from tests.unit.nki.kernels import floats, run_raw

P = 128
WIDE = 256


def attention(q, k, v):
    """softmax(q.T @ k, causal) @ v, with blocks above the diagonal masked away."""
    d, n = q.shape
    out = nl.ndarray((n, d), dtype=q.dtype, buffer=nl.shared_hbm)
    blocks = n // WIDE
    rows = nl.arange(P)[:, None]
    for q_block in nl.affine_range(n // P):
        top = nl.zeros((blocks, nl.par_dim(P), 1), dtype=nl.float32)
        total = nl.zeros((blocks, nl.par_dim(P), 1), dtype=nl.float32)
        held = nl.zeros((blocks, nl.par_dim(P), d), dtype=nl.float32)
        q_tile = nl.multiply(nl.load(q[:, q_block * P + nl.arange(P)[None, :]]), d**-0.5)
        for block in nl.sequential_range(blocks):
            attend(q_tile, k, v, top, total, held, q_block, block)
        result = nl.divide(held[blocks - 1, :, :], total[blocks - 1, :, 0])
        nl.store(out[q_block * P + rows, nl.arange(d)[None, :]], result)
    return out


def attend(q_tile, k, v, top, total, held, q_block, block):
    """One block of keys: running maximum, sum and output."""
    d = q_tile.shape[0]
    rows, wide, columns = nl.arange(P)[:, None], nl.arange(WIDE)[None, :], nl.arange(P)[None, :]
    here = q_block * P >= block * WIDE
    beyond = q_block * P < block * WIDE
    scores = nl.zeros((nl.par_dim(P), WIDE), dtype=nl.float32, buffer=nl.psum)
    keys = nl.load(k[:, block * WIDE + wide])
    scores[rows, wide] += nl.matmul(q_tile, keys, transpose_x=True, mask=here)
    causal = nisa.affine_select(
        pred=q_block * P + rows >= block * WIDE + wide, on_true_tile=scores, on_false_value=-9984.0, mask=here
    )
    largest = nisa.tensor_reduce(np.max, causal, axis=(1,), mask=here)
    before = max(block - 1, 0)
    previous = nl.copy(top[before, rows, 0])
    if block == 0:
        top[0, rows, 0] = nl.copy(largest)
    else:
        top[block, rows, 0] = nl.maximum(previous, largest, mask=here)
        top[block, rows, 0] = nl.copy(previous, mask=beyond)
    weights = nisa.activation(np.exp, causal, bias=-1 * top[block, rows, 0], scale=1.0, mask=here)
    weighted = nl.zeros((nl.par_dim(P), d), dtype=nl.float32, buffer=nl.psum)
    for half in nl.affine_range(WIDE // P):
        turned = nl.copy(nisa.nc_transpose(weights[rows, half * P + columns]))
        values = nl.load(v[block * WIDE + half * P + rows, nl.arange(d)[None, :]])
        weighted[...] += nl.matmul(turned, values, transpose_x=True, mask=here)
    scale = nisa.activation(np.exp, previous, bias=-1 * top[block, rows, 0], mask=here)
    row_sum = nl.sum(weights, axis=1, mask=here)
    held[block] = nl.copy(held[before], mask=beyond)
    held[block] = nl.add(nl.multiply(held[before], scale, mask=here), weighted, mask=here)
    total[block, :, 0] = nl.copy(total[before, :, 0], mask=beyond)
    total[block, :, 0] = nl.add(nl.multiply(total[before, :, 0], scale, mask=here), row_sum, mask=here)


def test_blocks_masked_away_leave_no_trace():
    n, d = 512, 64
    q, k, v = floats(d, n, seed=1), floats(d, n, seed=2), floats(n, d, seed=3)
    scores = np.where(np.tril(np.ones((n, n), bool)), q.T @ k * d**-0.5, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = weights / weights.sum(axis=1, keepdims=True) @ v
    outputs = run_raw(attention, q, k, v, older=True).outputs
    np.testing.assert_allclose(np.asarray(outputs), expected, atol=2e-6)


@pytest.mark.parametrize(
    ("key", "shape"),
    [
        ((slice(None), 3), (P, 1)),
        ((32, slice(None)), (1, 8)),
        ((32, 3), (1, 1)),
        ((slice(0, 16), slice(2, 4)), (16, 2)),
    ],
)
def test_views_keep_partitions_and_a_free_dimension(key, shape):
    x = floats(P, 8)

    def kernel(x):
        tile = nl.load(x)
        part = tile[key]
        assert part.shape == shape
        out = nl.ndarray(shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.copy(part))
        return out

    np.testing.assert_array_equal(np.asarray(run_raw(kernel, x, older=True).outputs), x[key].reshape(shape))


def test_reductions_leave_columns_and_rows():
    x = floats(P, 8)

    def kernel(x):
        tile = nl.load(x)
        column, row = nl.sum(tile, axis=1), nl.max(tile, axis=0)
        assert (column.shape, row.shape) == ((P, 1), (1, 8))
        sums = nl.ndarray((P, 1), dtype=x.dtype, buffer=nl.shared_hbm)
        tops = nl.ndarray((1, 8), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(sums, column)
        nl.store(tops, row)
        return sums, tops

    sums, tops = run_raw(kernel, x, older=True).outputs
    np.testing.assert_allclose(np.asarray(sums)[:, 0], x.sum(axis=1), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(np.asarray(tops)[0], x.max(axis=0))
