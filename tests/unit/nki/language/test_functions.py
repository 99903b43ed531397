from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from neuron_tools.nki import language as nl
from tests.unit.nki.kernels import floats, integers, run, run_raw

X, Y = floats(64, 24), floats(64, 24, seed=1)
COLUMN, ROW = floats(64, 1, seed=2), floats(1, 24, seed=3)

BINARY = {
    nl.add: np.add, nl.subtract: np.subtract, nl.multiply: np.multiply, nl.divide: np.divide,
    nl.maximum: np.maximum, nl.minimum: np.minimum, nl.power: np.power, nl.equal: np.equal,
    nl.not_equal: np.not_equal, nl.greater: np.greater, nl.greater_equal: np.greater_equal,
    nl.less: np.less, nl.less_equal: np.less_equal, nl.logical_and: np.logical_and,
    nl.logical_or: np.logical_or, nl.logical_xor: np.logical_xor, nl.fmod: np.fmod, nl.mod: np.mod,
}  # fmt: skip


@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
def test_binary_functions_of_two_tiles(function):
    x = np.abs(X) if function is nl.power else X
    np.testing.assert_allclose(run(lambda a, b: function(a, b), x, Y), BINARY[function](x, Y), rtol=1e-5)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (lambda a, c, r: nl.add(a, 1.5), X + 1.5),
        (lambda a, c, r: nl.subtract(1.5, a), 1.5 - X),
        (lambda a, c, r: nl.multiply(a, c), X * COLUMN),
        (lambda a, c, r: nl.subtract(c, a), COLUMN - X),
        (lambda a, c, r: nl.maximum(a, r), np.maximum(X, ROW)),
        (lambda a, c, r: nl.divide(r, c), ROW / COLUMN),
        (lambda a, c, r: nl.add(a, a, dtype=nl.bfloat16), (X + X).astype(ml_dtypes.bfloat16)),
        (lambda a, c, r: nl.negative(a), -X),
        (lambda a, c, r: nl.logical_not(nl.greater(a, 0.0)), X <= 0),
        (lambda a, c, r: nl.where(nl.greater(a, 0.0), a, -1.0), np.where(X > 0, X, -1)),
        (lambda a, c, r: nl.where(nl.less(a, c), c, a), np.where(X < COLUMN, COLUMN, X)),
        (lambda a, c, r: nl.copy(a, dtype=nl.float16), X.astype(np.float16)),
        (lambda a, c, r: nl.broadcast_to(r, (64, 24)), np.broadcast_to(ROW, (64, 24))),
        (lambda a, c, r: nl.expand_dims(a, 1), X[:, None]),
        (lambda a, c, r: nl.dropout(a, 1.0), np.zeros_like(X)),
        (lambda a, c, r: nl.zeros_like(a), np.zeros_like(X)),
    ],
)  # fmt: skip
def test_numbers_columns_and_rows_broadcast(body, expected):
    np.testing.assert_allclose(run(body, X, COLUMN, ROW), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (lambda a: nl.sum(a, axis=1), X.sum(1)),
        (lambda a: nl.sum(a, axis=[1], keepdims=True), X.sum(1, keepdims=True)),
        (lambda a: nl.max(a, axis=1), X.max(1)),
        (lambda a: nl.min(a, 1), X.min(1)),
        (lambda a: nl.prod(a, axis=1), X.prod(1)),
        (lambda a: nl.mean(a, axis=1, keepdims=True), X.mean(1, keepdims=True)),
        (lambda a: nl.var(a, axis=1), X.var(1)),
        (lambda a: nl.all(nl.greater(a, -2.1), axis=1), (X > -2.1).all(1)),
        (lambda a: nl.softmax(a, axis=-1), np.exp(X) / np.exp(X).sum(1, keepdims=True)),
        (lambda a: nl.rms_norm(a, None, axis=1, n=24), X / np.sqrt((X * X).mean(1, keepdims=True) + 1e-6)),
        (lambda a: nl.sum(a.reshape((64, 4, 6)), axis=1), X.reshape(64, 4, 6).sum(1)),
    ],
)  # fmt: skip
def test_reductions(body, expected):
    np.testing.assert_allclose(run(body, X), expected, rtol=1e-3, atol=1e-5)


def test_rms_norm_multiplies_weights():
    def body(a, w):
        return nl.rms_norm(a, w, axis=1, n=24, epsilon=1e-5)

    expected = X / np.sqrt((X * X).mean(1, keepdims=True) + 1e-5) * ROW
    np.testing.assert_allclose(run(body, X, ROW), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("turned", [False, True])
def test_matmul_of_tiles(turned):
    a, b = floats(64, 32), floats(32 if not turned else 64, 48, seed=1)
    expected = (a.T if turned else a) @ b
    found = run(lambda x, y: nl.matmul(x, y, transpose_x=turned), a, b)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_transpose_and_gather():
    index = integers(64, 10, high=24, dtype=np.uint32)
    np.testing.assert_array_equal(run(lambda a: nl.transpose(a), X), X.T)
    found = run(lambda a, i: nl.gather_flattened(a, i), X, index)
    np.testing.assert_array_equal(found, np.take_along_axis(X, index.astype(int), axis=1))


def test_loads_and_stores_move_between_memories():
    def kernel(a, b):
        result = nl.ndarray((24, 64), dtype=a.dtype, buffer=nl.shared_hbm)
        turned = nl.load_transpose2d(a)
        nl.store(result[0:24, 0:32], nl.load(b[0:24, 0:32]))
        nl.store(result[:, 32:64], turned[:, 32:64])
        return result

    b = floats(24, 64)
    expected = b.copy()
    expected[:, 32:] = X.T[:, 32:]
    np.testing.assert_array_equal(run_raw(kernel, X, b).outputs, expected)


def test_created_tensors_hold_what_they_say():
    def kernel(a):
        filled = nl.full((4, 6), 2.5, nl.float32)
        total = nl.add(filled, nl.ones((4, 6), nl.float32))
        total = nl.add(total, nl.zeros((4, 6), nl.float32))
        like = nl.empty_like(total)
        like[...] = total
        result = nl.zeros((8, 6), nl.float32, buffer=nl.shared_hbm)
        nl.store(result[0:4], like)
        return result

    found = run_raw(kernel, X).outputs
    assert (found[:4] == 3.5).all()
    assert (found[4:] == 0).all()


def test_constants_are_shared_and_can_be_loaded():
    def kernel(a):
        result = nl.ndarray((5, 5), dtype=nl.float32, buffer=nl.shared_hbm)
        first = nl.shared_constant(np.arange(25).reshape(5, 5), dtype=nl.float32)
        again = nl.shared_constant(np.arange(25).reshape(5, 5), dtype=nl.float32)
        assert first.backing is again.backing
        identity = nl.copy(nl.shared_identity_matrix(5), dtype=nl.float32)
        nl.store(result, nl.add(nl.load(first), identity))
        return result

    np.testing.assert_array_equal(
        run_raw(kernel, X).outputs, np.arange(25).reshape(5, 5) + np.eye(5, dtype=np.float32)
    )


def test_random_numbers_repeat_with_their_seed():
    def body(a):
        nl.random_seed(3)
        first = nl.rand((16, 8), nl.float32)
        nl.random_seed(3)
        return nl.subtract(first, nl.rand((16, 8), nl.float32))

    assert (run(body, X) == 0).all()


def test_device_print_shows_values(capsys):
    def body(a):
        nl.device_print("first:", a[0:1, 0:2])
        return a

    run(body, X)
    assert capsys.readouterr().out.startswith("first: [[")


def test_functions_of_numbers_are_numbers():
    def body(a):
        assert nl.add(2, 3) == 5
        assert nl.maximum(2, 3) == 3
        assert float(nl.sqrt(np.float32(16))) == 4
        return a

    run(body, X)


def test_launch_position_without_a_grid():
    def body(a):
        assert nl.program_ndim() == 0
        assert nl.program_id(0) == 0
        assert nl.num_programs(axes=0) == 1
        return a

    run(body, X)


def test_tile_sizes_follow_the_target():
    def body(a):
        sizes = nl.tile_size
        assert (sizes.pmax, sizes.psum_fmax, sizes.gemm_stationary_fmax) == (128, 512, 128)
        assert (sizes.gemm_moving_fmax, sizes.bn_stats_fmax, sizes.psum_num_banks) == (512, 512, 8)
        assert sizes.total_available_sbuf_size == sizes.sbuf_fmax_bytes == 4 * sizes.sbuf_fmax
        return a

    run(body, X)
    run(body, X, target="trn3")
