from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from neuron_tools.compat.neuronxcc import nki
from neuron_tools.compat.neuronxcc.nki import compiler as ncc, isa as nisa, language as nl, typing as nt
from neuron_tools.compat.neuronxcc.nki.typing import scalar
from neuron_tools.neff import read_neff
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.lowering import lower
from tests.unit.nki.kernels import floats, integers

X = floats(200, 96)


def traced(kernel, *arrays):
    """Run with a trace, so that rules of recording hold too."""
    return kernel.run(*arrays).outputs


@nki.jit
def masked_softmax(a: nt.tensor[200, 96]):
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rows, columns = nl.arange(128)[:, None], nl.arange(96)[None, :]
    for i in nl.affine_range(math.ceil(a.shape[0] / 128)):
        inside = i * 128 + rows < a.shape[0]
        tile = nl.load(a[i * 128 + rows, columns], mask=inside)
        power = nl.exp(tile, mask=inside)
        total = nl.sum(power, axis=[1], keepdims=True, mask=inside)
        nl.store(result[i * 128 + rows, columns], value=power / total, mask=inside)
    return result


def test_masks_leave_rows_out():
    expected = np.exp(X) / np.exp(X).sum(1, keepdims=True)
    np.testing.assert_allclose(traced(masked_softmax, X), expected, rtol=1e-5)


@nki.jit
def tiled_matmul(lhs_t, rhs):
    depth, rows = lhs_t.shape
    _, columns = rhs.shape
    result = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    p, m = nl.mgrid[0:128, 0:64]
    grid = nl.mgrid[0:128, 0:256]
    for i in nl.affine_range(rows // 64):
        total = nl.zeros((nl.par_dim(64), 256), nl.float32, buffer=nl.psum)
        for k in nl.affine_range(depth // 128):
            left = nl.load(lhs_t[k * 128 + p, i * 64 + m])
            right = nl.load(rhs[k * 128 + grid.p, grid.x])
            total += nl.matmul(left, right, transpose_x=True)
        nl.store(result[i * 64 + nl.arange(64)[:, None], nl.arange(256)[None, :]], value=total)
    return result


def test_matmuls_accumulate_in_psum():
    a, b = floats(256, 128), floats(256, 256, seed=1)
    np.testing.assert_allclose(traced(tiled_matmul, a, b), a.T @ b, rtol=1e-4, atol=1e-3)


@nki.jit
def blocked(a):
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    held = nl.zeros((4, nl.par_dim(128), 32), dtype=np.float32)
    assert held.shape == (4, 128, 32)
    for i in nl.affine_range(4):
        held[i, :, :] = nl.load(a[i * 128 : (i + 1) * 128, 0:32])
        held[i, 0:128, 0:32] += 1.0
    for i in nl.sequential_range(4):
        nl.store(result[i * 128 : (i + 1) * 128, 0:32], value=held[i])
    return result


def test_block_dimensions_hold_many_tiles():
    a = floats(512, 32)
    np.testing.assert_array_equal(traced(blocked, a), a + 1)


def kernel_of(body):
    """A kernel that loads its arguments, runs a body and stores its result."""

    @nki.jit
    def kernel(*tensors):
        tile = body(*(nl.load(t) for t in tensors))
        result = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
        nl.store(result, value=tile)
        return result

    return kernel


A, B, COLUMN = floats(64, 48), floats(64, 48, seed=1), floats(64, 1, seed=2)
BITS = integers(64, 48, high=2, dtype=np.uint8)
INDEX = integers(64, 4, high=48, dtype=np.uint16)


def predicated(a, b, p):
    nisa.tensor_copy_predicated(src=b, dst=a, predicate=p)
    return a


def predicated_by_row(a, b, p):
    blocks = a.reshape((64, 6, 8))
    nisa.tensor_copy_predicated(src=b.reshape((64, 6, 8)), dst=blocks, predicate=p)
    return a


def select(a, b, p):
    result = nl.ndarray(a.shape, dtype=a.dtype)
    nisa.select_reduce(dst=result, predicate=p, on_true=a, on_false=0.0)
    return result


def reduced(a):
    total = nl.ndarray((64, 1), dtype=np.float32)
    result = nl.ndarray(a.shape, dtype=a.dtype)
    result[...] = nisa.activation_reduce(np.exp, a, reduce_op=np.sum, reduce_res=total[...])
    return nl.multiply(result, total)


def scalar_reduced(a):
    top = nl.ndarray((64, 1), dtype=np.float32)
    result = nl.ndarray(a.shape, dtype=a.dtype)
    result[...] = nisa.tensor_scalar_reduce(
        data=a, op0=np.multiply, operand0=2.0, reduce_op=np.max, reduce_res=top[...]
    )
    return nl.subtract(result, top)


def shuffled(a):
    result = nl.ndarray(a.shape, dtype=a.dtype)
    nisa.nc_stream_shuffle(src=a, dst=result, shuffle_mask=[31 - i for i in range(32)])
    return result


def found_in_rows(a):
    here = nl.arange(64)[:, None] < 40
    return nisa.nc_find_index8(data=a, vals=nisa.max8(src=a), mask=here)[0:40]


def gathered_reference(a, index):
    expected = np.empty((64, 64), np.float32)
    for first in range(0, 64, 16):
        expected[first : first + 16] = a[first : first + 16][:, index[first : first + 16].T.reshape(-1)]
    return expected


ROWS, COLUMNS = np.arange(64)[:, None], np.arange(48)[None, :]
CASES = {
    "activation": (lambda a: nisa.activation(np.exp, a, scale=2.0), (A,), np.exp(2 * A)),
    "activation_reduce": (reduced, (A,), np.exp(A) * np.exp(A).sum(1, keepdims=True)),
    "tensor_scalar_reduce": (scalar_reduced, (A,), 2 * A - (2 * A).max(1, keepdims=True)),
    "tensor_reduce": (
        lambda a: nisa.tensor_reduce(np.max, a, axis=(1,), negate=True, keepdims=True),
        (A,),
        -A.max(1, keepdims=True),
    ),
    "tensor_reduce over partitions": (
        lambda a: nisa.tensor_reduce(np.add, a, axis=0, keepdims=True),
        (A,),
        A.sum(0, keepdims=True),
    ),
    "tensor_partition_reduce": (
        lambda a: nisa.tensor_partition_reduce(np.add, a),
        (A,),
        A.sum(0, keepdims=True),
    ),
    "tensor_tensor": (lambda a, b: nisa.tensor_tensor(a, b, op=np.multiply), (A, B), A * B),
    "tensor_scalar": (
        lambda a, c: nisa.tensor_scalar(a, np.subtract, c, op1=np.multiply, operand1=3.0),
        (A, COLUMN),
        (A - COLUMN) * 3,
    ),
    "scalar_tensor_tensor": (
        lambda a, b: nisa.scalar_tensor_tensor(
            data=a, op0=np.subtract, operand0=1.0, op1=np.multiply, operand1=b
        ),
        (A, B),
        (A - 1) * B,
    ),
    "tensor_tensor_scan": (
        lambda a, b: nisa.tensor_tensor_scan(a, b, initial=0, op0=np.add, op1=np.add),
        (A, B),
        np.cumsum(A + B, axis=1),
    ),
    "tensor_copy": (lambda a: nisa.tensor_copy(a, dtype=nl.float16), (A,), A.astype(np.float16)),
    "tensor_copy_dynamic_src": (lambda a: nisa.tensor_copy_dynamic_src(a[:, 4:8]), (A,), A[:, 4:8]),
    "tensor_copy_predicated": (predicated, (A, B, BITS), np.where(BITS != 0, B, A)),
    "tensor_copy_predicated by row": (
        predicated_by_row,
        (A, B, BITS[:, :1]),
        np.where(BITS[:, :1] != 0, B, A),
    ),
    "tensor_copy_predicated by group": (
        predicated_by_row,
        (A, B, BITS[:, :6]),
        np.where(np.repeat(BITS[:, :6], 8, axis=1) != 0, B, A),
    ),
    "select_reduce": (select, (A, B, BITS), np.where(BITS != 0, A, 0)),
    "reciprocal": (lambda a: nisa.reciprocal(a), (A,), 1 / A),
    "memset": (lambda a: nisa.memset((64, 48), 4.0, dtype=np.float32), (A,), np.full((64, 48), 4.0)),
    "iota": (
        lambda a: nisa.iota(nl.arange(64)[:, None] * 2 + nl.arange(48)[None, :] + 7, dtype=nl.int32),
        (A,),
        ROWS * 2 + COLUMNS + 7,
    ),
    "affine_select": (
        lambda a: nisa.affine_select(
            pred=nl.arange(64)[:, None] >= nl.arange(48)[None, :], on_true_tile=a, on_false_value=-9.0
        ),
        (A,),
        np.where(ROWS >= COLUMNS, A, -9),
    ),
    "affine_select of a band": (
        lambda a: nisa.affine_select(
            pred=(nl.arange(64)[:, None] >= nl.arange(48)[None, :]) & (nl.arange(48)[None, :] > 3),
            on_true_tile=a,
            on_false_value=-9.0,
        ),
        (A,),
        np.where((ROWS >= COLUMNS) & (COLUMNS > 3), A, -9),
    ),
    "bn_stats": (lambda a: nisa.bn_aggr(nisa.bn_stats(a)), (A,), np.stack([A.mean(1), A.var(1)], axis=1)),
    "max8": (lambda a: nisa.max8(src=a), (A,), -np.sort(-A, axis=1)[:, :8]),
    "nc_find_index8": (
        lambda a: nisa.nc_find_index8(data=a, vals=nisa.max8(src=a)),
        (A,),
        np.argsort(-A, axis=1, kind="stable")[:, :8],
    ),
    "nc_find_index8 of some rows": (found_in_rows, (A,), np.argsort(-A[:40], axis=1, kind="stable")[:, :8]),
    "nc_match_replace8": (
        lambda a: nl.max(
            nisa.nc_match_replace8(data=a, vals=nisa.max8(src=a), imm=-9.0), axis=1, keepdims=True
        ),
        (A,),
        -np.sort(-A, axis=1)[:, 8:9],
    ),
    "nc_stream_shuffle": (shuffled, (A,), np.concatenate([A[:32][::-1], A[32:][::-1]])),
    "nc_transpose": (lambda a: nisa.nc_transpose(a), (A,), A.T),
    "nc_transpose on the Vector engine": (
        lambda a: nisa.nc_transpose(a[0:32, 0:32], engine=nisa.vector_engine),
        (A,),
        A[:32, :32].T,
    ),
    "nc_matmul": (lambda a, b: nl.copy(nisa.nc_matmul(a, b)), (A, B), A.T @ B),
    "local_gather": (lambda a, i: nisa.local_gather(a, i), (A, INDEX), gathered_reference(A, INDEX)),
    "dropout": (lambda a: nisa.dropout(a, prob=1.0), (A,), np.zeros_like(A)),
    "sequence_bounds": (
        lambda ids: nisa.sequence_bounds(segment_ids=ids),
        (np.array([[1, 1, 2]], np.float32),),
        np.array([[[0, 0, 2], [2, 2, 3]]]),
    ),
    "range_select": (
        lambda a, low, high: nisa.range_select(
            on_true_tile=a, comp_op0=nl.greater_equal, comp_op1=nl.less, bound0=low, bound1=high
        ),
        (A, np.full((64, 1), 4, np.float32), np.full((64, 1), 9, np.float32)),
        np.where((COLUMNS >= 4) & (COLUMNS < 9), A, np.finfo(np.float32).min),
    ),
    "dma_transpose": (lambda a: nisa.dma_transpose(a), (A,), A.T),
    "static_cast": (lambda a: nl.static_cast(a, nl.float16), (A,), A.astype(np.float16)),
    "load_transpose2d": (lambda a: nl.copy(a), (A,), A),
}


@pytest.mark.parametrize("name", CASES)
def test_instructions_return_their_result(name):
    body, arrays, expected = CASES[name]
    np.testing.assert_allclose(traced(kernel_of(body), *arrays), expected, rtol=2e-4, atol=2e-4)


def test_names_that_a_kernel_gives_reach_the_profile():
    @nki.jit
    def kernel(a):
        result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(result, value=nisa.activation(np.exp, nl.load(a), name="powers"))
        return result

    (trace,) = kernel.run(A).traces
    assert "powers" in lower(trace, "named").source.call_names()


def test_a_missing_argument_is_pythons_error_at_the_call():
    with pytest.raises(TypeError, match=r"activation\(\) missing 1 required positional argument: 'data'"):
        nisa.activation(np.exp)


@nki.jit
def summed_over_loops(a):
    result = nl.ndarray((128, 32), dtype=a.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(4):
        tile = nl.load(a[i * 128 : (i + 1) * 128])
        total = nl.loop_reduce(tile, op=np.add, loop_indices=[i], dtype=np.float32)
    nl.store(result, value=total)
    return result


def test_loop_reduce_adds_over_iterations():
    a = floats(512, 32)
    np.testing.assert_allclose(
        traced(summed_over_loops, a), a.reshape(4, 128, 32).sum(0), rtol=1e-5, atol=1e-5
    )


@nki.jit
def added_on_a_grid(a, b):
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rows = nl.program_id(0) * 128 + nl.arange(128)[:, None]
    columns = nl.program_id(1) * 16 + nl.arange(16)[None, :]
    assert nl.program_ndim() == 2
    assert (nl.num_programs(0), nl.num_programs(1)) == (2, 3)
    nl.store(result[rows, columns], value=nl.load(a[rows, columns]) + nl.load(b[rows, columns]))
    return result


def test_a_grid_runs_every_instance():
    a, b = floats(256, 48), floats(256, 48, seed=1)
    np.testing.assert_array_equal(added_on_a_grid[2, 3](a, b), a + b)
    np.testing.assert_array_equal(added_on_a_grid[[2, 3]](a, b), a + b)
    for rows in (nl.spmd_dim(1, nl.nc(2)), nl.spmd_dim(nl.nc(2), 1), nl.spmd_dim(2), nl.nc(2) * 1):
        np.testing.assert_array_equal(added_on_a_grid[rows, 3](a, b), a + b)


def test_axes_of_a_grid_multiply():
    sizes = [
        nl.spmd_dim(3, nl.nc(2)),
        nl.spmd_dim(nl.nc(2), 3),
        nl.nc(2) * 3,
        3 * nl.nc(2),
        nl.spmd_dim(3, 2),
    ]
    assert [int(size) for size in sizes] == [6] * 5


@nki.jit
def placed(a):
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tiles = nl.ndarray(
        (2, nl.par_dim(128), 32),
        dtype=np.float32,
        buffer=ncc.sbuf.mod_alloc(base_addr=1024, num_free_tiles=(2,)),
    )

    def bank(banks, idx, pdim_size, fdim_size):
        return banks[idx], 0, 0

    squares = nl.ndarray(
        (2, nl.par_dim(32), 32),
        dtype=np.float32,
        buffer=ncc.psum.alloc(functools.partial(bank, {(0,): 1, (1,): 5})),
    )
    for i in nl.affine_range(2):
        tiles[i] = nl.load(a[i * 128 : (i + 1) * 128])
        squares[i] = nisa.nc_matmul(tiles[i], tiles[i])
        nl.store(result[i * 128 : i * 128 + 32], value=squares[i])
        nl.store(result[i * 128 + 32 : (i + 1) * 128], value=tiles[i, 32:128])
    return result


def test_tiles_may_be_placed_by_the_kernel():
    a = floats(256, 32)
    expected = a.copy()
    for i in range(2):
        block = a[i * 128 : (i + 1) * 128]
        expected[i * 128 : i * 128 + 32] = block.T @ block
    np.testing.assert_allclose(traced(placed, a), expected, rtol=1e-4, atol=1e-4)


@nki.jit
def indirect(table, index):
    result = nl.ndarray((64, 16), dtype=table.dtype, buffer=nl.shared_hbm)
    rows = nl.load(index)
    p, f = nl.mgrid[0:64, 0:16]
    picked = nl.load(table[rows[p, 0], f])
    nl.store(result[p, f], value=picked)
    return result


def test_a_tile_may_index_a_tensor():
    table, index = floats(100, 16), integers(64, 1, high=100)
    np.testing.assert_array_equal(traced(indirect, table, index), table[index[:, 0]])


@nki.jit
def strided(a):
    result = nl.ndarray((128, 8, 4), dtype=a.dtype, buffer=nl.shared_hbm)
    p, i, j = nl.arange(128)[:, None, None], nl.arange(8)[None, :, None], nl.arange(4)[None, None, :]
    tile = nl.load(a)
    nl.store(result[p, i, j], value=nl.copy(tile[p, i * 4 + (3 - j)]))
    return result


def test_expressions_may_stride_and_turn_around():
    a = floats(128, 32)
    np.testing.assert_array_equal(traced(strided, a), a.reshape(128, 8, 4)[:, :, ::-1])


def test_simulate_kernel_and_benchmark():
    found = nki.simulate_kernel(masked_softmax, X)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
    timed = nki.benchmark(masked_softmax, warmup=2, iters=5)
    np.testing.assert_allclose(timed(X), found)
    latency = timed.benchmark_result.nc_latency
    assert latency.get_latency_percentile(50) == latency.get_latency_percentile(99) > 1


def test_profile_writes_its_files(tmp_path):
    timed = nki.profile(working_directory=str(tmp_path), save_neff_name="k.neff", save_trace_name="k.ntff")(
        masked_softmax
    )
    timed(X)
    assert read_neff(tmp_path / "k.neff").program.name == "masked_softmax"
    assert '"kernel": "masked_softmax"' in (tmp_path / "k.ntff").read_text()


@pytest.mark.parametrize(
    ("executions", "every", "expected"),
    [
        (20, 10, ["k_exec_10", "k_exec_20"]),
        (3, 1, ["k", "k_exec_2", "k_exec_3"]),
        (5, 10, ["k_exec_10"]),
        (1, 1, ["k"]),
    ],
)
def test_profile_has_a_session_and_a_report_of_every_nth_execution(executions, every, expected, tmp_path):
    folder = tmp_path / "made" / "here"
    timed = nki.profile(
        working_directory=str(folder), save_neff_name="k.neff", save_trace_name="k.ntff",
        overwrite=False, num_execs=executions, profile_nth=every,
    )(masked_softmax)  # fmt: skip
    timed(X)
    assert sorted(path.stem for path in folder.glob("*.ntff")) == expected
    assert sorted(path.stem for path in (folder / "json_reports").iterdir()) == expected


def test_profile_refuses_numbers_below_one():
    with pytest.raises(ValueError, match="profile_nth=0 must both be at least 1"):
        nki.profile(masked_softmax, profile_nth=0)


def test_baremetal_kernels_take_outputs_as_arguments():
    @nki.baremetal
    def kernel(a, result):
        nl.store(result, value=nl.load(a) * 2.0)

    a, result = floats(64, 8), np.zeros((64, 8), np.float32)
    kernel(a, result)
    np.testing.assert_array_equal(result, 2 * a)


def test_a_loop_runs_as_often_as_a_tile_says():
    @nki.jit
    def kernel(a, count):
        result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        steps, total = nl.load(count), nl.load(a)
        for _ in range(scalar(steps)):
            total[...] = total + 1.0
        nl.store(result, value=total)
        return result

    a = floats(64, 8)
    for count in (0, 3):
        found = nki.simulate_kernel(kernel, a, np.array([[count]], np.int32))
        np.testing.assert_allclose(found, a + count, rtol=1e-6)


def test_a_scalar_is_one_element():
    @nki.jit
    def kernel(a):
        for _ in range(scalar(nl.load(a))):
            pass
        return a

    with pytest.raises(NkiValidationError, match=r"one element, got shape \(64, 8\)"):
        nki.simulate_kernel(kernel, floats(64, 8))
