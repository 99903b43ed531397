from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.errors import NkiValidationError
from tests.unit.nki.kernels import floats, integers, run_raw, tile

TABLE = floats(50, 24)
INDEX = integers(32, 1, high=50, dtype=np.uint32)


def test_dma_copy_converts_between_types():
    def kernel(a):
        result = nl.ndarray(a.shape, dtype=nl.bfloat16, buffer=nl.shared_hbm)
        staged = tile(a.shape, nl.float16)
        nisa.dma_copy(dst=staged, src=a)
        nisa.dma_copy(dst=result, src=staged)
        return result

    found = run_raw(kernel, TABLE).outputs
    np.testing.assert_array_equal(found, TABLE.astype(np.float16).astype(ml_dtypes.bfloat16))


def gather(kernel_body):
    def kernel(table, index):
        rows = tile((32, 1), nl.uint32)
        nisa.dma_copy(rows, index)
        picked = tile((32, 24))
        nisa.memset(picked, -1.0)
        kernel_body(picked, table, rows)
        result = nl.ndarray((32, 24), dtype=nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(result, picked)
        return result

    return kernel


@pytest.mark.parametrize("spelling", ["ap", "vector_select"])
def test_a_gather_takes_rows_by_index(spelling):
    def body(picked, table, rows):
        if spelling == "ap":
            source = table.ap(pattern=[[24, 32], [1, 24]], offset=0, vector_offset=rows, indirect_dim=0)
        else:
            source = table.vector_select(dim=0, vector_offset=rows)
        nisa.dma_copy(dst=picked, src=source)

    found = run_raw(gather(body), TABLE, INDEX).outputs
    np.testing.assert_array_equal(found, TABLE[INDEX[:, 0]])


def test_indices_out_of_bounds_are_refused_or_skipped():
    index = INDEX.copy()
    index[3] = 99

    def body(mode):
        return gather(
            lambda picked, table, rows: nisa.dma_copy(picked, table.vector_select(0, rows), oob_mode=mode)
        )

    found = run_raw(body(nisa.oob_mode.skip), TABLE, index).outputs
    np.testing.assert_array_equal(found[3], np.full(24, -1))
    np.testing.assert_array_equal(found[4], TABLE[index[4, 0]])
    with pytest.raises(NkiValidationError, match="out of bounds"):
        run_raw(body(nisa.oob_mode.error), TABLE, index)


@pytest.mark.parametrize("left_out", [0, 3])
def test_a_scatter_writes_rows_by_index_but_those_out_of_bounds(left_out):
    rows = np.random.default_rng(0).permutation(50)[:32].astype(np.uint32)[:, None]
    rows[:left_out] = 99
    values = floats(32, 24, seed=4)

    def kernel(table, index, values):
        places, data = tile((32, 1), nl.uint32), tile((32, 24))
        nisa.dma_copy(places, index)
        nisa.dma_copy(data, values)
        result = nl.ndarray((50, 24), dtype=nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(result, table)
        target = result.ap(pattern=[[24, 32], [1, 24]], vector_offset=places, indirect_dim=0)
        nisa.dma_copy(dst=target, src=data, oob_mode=nisa.oob_mode.skip)
        return result

    expected = TABLE.copy()
    expected[rows[left_out:, 0]] = values[left_out:]
    np.testing.assert_array_equal(run_raw(kernel, TABLE, rows, values).outputs, expected)


def test_a_scalar_offset_moves_the_whole_pattern():
    def kernel(table, index):
        offset, block = tile((1, 1), nl.int32), tile((8, 24))
        nisa.dma_copy(offset, index)
        nisa.dma_copy(
            dst=block, src=table.ap(pattern=[[24, 8], [1, 24]], scalar_offset=offset, indirect_dim=0)
        )
        register = nisa.register_alloc(offset)
        again = tile((1, 24))
        nisa.dma_copy(again, table[nl.ds(register, 1)])
        result = nl.ndarray((9, 24), dtype=nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(result[0:8], block)
        nisa.dma_copy(result[8:9], again)
        return result

    found = run_raw(kernel, TABLE, np.array([[7]], np.int32)).outputs
    np.testing.assert_array_equal(found, TABLE[[*range(7, 15), 7]])


def test_dma_transpose_swaps_the_outer_and_the_inner_dimension():
    a = floats(16, 3, 64).astype(ml_dtypes.bfloat16)

    def kernel(a):
        turned = tile((64, 3, 16), nl.bfloat16)
        nisa.dma_transpose(dst=turned, src=a)
        flat = tile((24, 50))
        nisa.dma_transpose(flat, nl_table[0], axes=(1, 0))
        result = nl.ndarray((64, 3, 16), dtype=nl.bfloat16, buffer=nl.shared_hbm)
        nisa.dma_copy(result, turned)
        other = nl.ndarray((24, 50), dtype=nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(other, flat)
        return result, other

    nl_table = []

    def with_table(a, table):
        nl_table[:] = [table]
        return kernel(a)

    first, second = run_raw(with_table, a, TABLE).outputs
    np.testing.assert_array_equal(first, a.transpose(2, 1, 0))
    np.testing.assert_array_equal(second, TABLE.T)


def test_dma_transpose_gathers_on_the_way():
    def body(table, index):
        rows = tile((32, 1), nl.uint32)
        nisa.dma_copy(rows, index)
        turned = tile((24, 32))
        nisa.dma_transpose(dst=turned, src=table.vector_select(0, rows))
        result = nl.ndarray((24, 32), dtype=nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(result, turned)
        return result

    np.testing.assert_array_equal(run_raw(body, TABLE, INDEX).outputs, TABLE[INDEX[:, 0]].T)


def test_dma_compute_adds_sources_and_gathers():
    def kernel(table, index, start):
        rows, total = tile((32, 1), nl.uint32), tile((32, 24))
        nisa.dma_copy(rows, index)
        nisa.dma_copy(total, start)
        nisa.dma_compute(dst=total, srcs=[total, table.vector_select(0, rows)], reduce_op=nl.add)
        result = nl.ndarray((32, 24), dtype=nl.float32, buffer=nl.shared_hbm)
        nisa.dma_compute(result, [total, start], nl.add, scales=[1.0, 1.0])
        return result

    start = floats(32, 24, seed=5)
    expected = 2 * start + TABLE[INDEX[:, 0]]
    np.testing.assert_allclose(run_raw(kernel, TABLE, INDEX, start).outputs, expected, rtol=1e-5)


def test_inputs_that_a_kernel_writes_are_written_back():
    values = floats(4, 8)

    def kernel(a):
        block = tile((4, 8))
        nisa.memset(block, 3.0)
        nisa.dma_copy(a, block)
        return a

    run_raw(kernel, values)
    assert (values == 3).all()
