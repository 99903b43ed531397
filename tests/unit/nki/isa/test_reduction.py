from __future__ import annotations

import numpy as np
import pytest

from neuron_tools.nki import isa as nisa, language as nl
from tests.unit.nki.kernels import floats, integers, run, tile

X = floats(128, 48)
CUBE = floats(128, 4, 12)


@pytest.mark.parametrize(
    ("op", "expected"),
    [(nl.add, np.sum), (nl.maximum, np.max), (nl.minimum, np.min), (nl.multiply, np.prod), (np.max, np.max),
     (nl.max, np.max), (nl.sum, np.sum), (nl.abs_max, lambda a, axis: np.abs(a).max(axis))],
)  # fmt: skip
def test_tensor_reduce_over_the_last_dimension(op, expected):
    def body(a):
        result = tile((128, 1))
        nisa.tensor_reduce(dst=result, op=op, data=a, axis=1)
        return result

    np.testing.assert_allclose(run(body, X)[:, 0], expected(X, axis=1), rtol=1e-4)


def test_tensor_reduce_over_several_dimensions_negated():
    def body(a):
        two, one = tile((128, 1)), tile((128, 4, 1))
        nisa.tensor_reduce(two, nl.add, a, axis=(1, 2), negate=True)
        nisa.tensor_reduce(one, nl.maximum, a, axis=[2], keepdims=True)
        return two, one

    two, one = run(body, CUBE)
    np.testing.assert_allclose(two[:, 0], -CUBE.sum(axis=(1, 2)), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(one, CUBE.max(axis=2, keepdims=True))


def test_tensor_reduce_of_bits():
    a = integers(128, 8, high=256)

    def body(a):
        result = tile((128, 1), nl.int32)
        nisa.tensor_reduce(result, nl.bitwise_or, a, axis=1)
        return result

    np.testing.assert_array_equal(run(body, a)[:, 0], np.bitwise_or.reduce(a, axis=1))


def test_tensor_scalar_reduce_gives_both_results():
    def body(a):
        result, top = tile((128, 48)), tile((128, 1))
        nisa.tensor_scalar_reduce(
            dst=result, data=a, op0=nl.multiply, operand0=3.0, reduce_op=nl.maximum, reduce_res=top
        )
        return result, top

    result, top = run(body, X)
    np.testing.assert_allclose(result, 3 * X, rtol=1e-6)
    np.testing.assert_allclose(top[:, 0], (3 * X).max(axis=1), rtol=1e-6)


def test_tensor_scalar_reduce_starts_from_a_loaded_value():
    def body(a):
        result, total = tile((128, 48)), tile((128, 1))
        nisa.tensor_scalar_reduce(
            result, a, nl.add, 0.0, nl.add, total, reduce_cmd=nisa.reduce_cmd.load_reduce, reduce_init=10.0
        )
        return total

    np.testing.assert_allclose(run(body, X)[:, 0], X.sum(axis=1) + 10, rtol=1e-5)


@pytest.mark.parametrize(
    ("op", "expected"), [(nl.add, np.cumsum), (nl.maximum, np.maximum.accumulate), (nl.multiply, np.cumprod)]
)
def test_tensor_scalar_cumulative_runs_along_the_free_dimension(op, expected):
    def body(a):
        result = tile((128, 48))
        nisa.tensor_scalar_cumulative(result, a, op0=nl.add, op1=op, imm0=0.5)
        return result

    np.testing.assert_allclose(run(body, X), expected(X + 0.5, axis=1), rtol=1e-3, atol=1e-4)


def test_tensor_scalar_cumulative_continues_from_the_registers():
    def body(a):
        result = tile((128, 48))
        nisa.tensor_scalar_cumulative(result[:, 0:24], a[:, 0:24], nl.add, nl.add, 0.0)
        nisa.tensor_scalar_cumulative(
            result[:, 24:48], a[:, 24:48], nl.add, nl.add, 0.0, reduce_cmd=nisa.reduce_cmd.reduce
        )
        return result

    np.testing.assert_allclose(run(body, X), np.cumsum(X, axis=1), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("op0", "op1"), [(nl.multiply, nl.add), (nl.add, nl.maximum), (nl.divide, nl.add)])
def test_tensor_tensor_scan_is_the_recurrence(op0, op1):
    factors, terms = floats(128, 16, low=0.5, high=1.5), floats(128, 16, seed=1)
    initial = floats(128, 1, seed=2)

    def body(a, b, start):
        result = tile((128, 16))
        nisa.tensor_tensor_scan(result, data0=a, data1=b, initial=start, op0=op0, op1=op1)
        return result

    functions = {nl.multiply: np.multiply, nl.add: np.add, nl.maximum: np.maximum, nl.divide: np.divide}
    state, expected = initial[:, 0], np.empty_like(factors)
    for column in range(16):
        state = functions[op1](functions[op0](factors[:, column], state), terms[:, column])
        expected[:, column] = state
    np.testing.assert_allclose(run(body, factors, terms, initial), expected, rtol=1e-4)


def test_bn_stats_and_bn_aggr_give_mean_and_variance():
    def body(a):
        stats, result = tile((128, 12)), tile((128, 2))
        nisa.bn_stats(dst=stats[:, 0:6], data=a[:, 0:24])
        nisa.bn_stats(stats[:, 6:12], a[:, 24:48])
        nisa.bn_aggr(dst=result, data=stats)
        return stats, result

    stats, result = run(body, X)
    np.testing.assert_allclose(result[:, 0], X.mean(axis=1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(result[:, 1], X.var(axis=1), rtol=1e-4)
    even = X[:, 0:24:2]
    np.testing.assert_allclose(stats[:, 0], 12)
    np.testing.assert_allclose(stats[:, 1], even.mean(axis=1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(stats[:, 2], even.var(axis=1) * 12, rtol=1e-4)


def test_max8_gives_the_largest_in_order():
    def body(a):
        result = tile((128, 8))
        nisa.max8(dst=result, src=a)
        return result

    np.testing.assert_array_equal(run(body, X), -np.sort(-X, axis=1)[:, :8])


def test_nc_find_index8_finds_each_value():
    def body(a):
        top, index = tile((128, 8)), tile((128, 8), nl.uint32)
        nisa.max8(top, a)
        nisa.nc_find_index8(dst=index, data=a, vals=top)
        return index

    np.testing.assert_array_equal(run(body, X), np.argsort(-X, axis=1, kind="stable")[:, :8])


def test_nc_match_replace8_replaces_first_matches():
    def body(a):
        top, result, index = tile((128, 8)), tile((128, 48)), tile((128, 8), nl.uint32)
        nisa.max8(top, a)
        nisa.nc_match_replace8(dst=result, data=a, vals=top, imm=-9.0, dst_idx=index)
        return result, index

    order = np.argsort(-X, axis=1, kind="stable")[:, :8]
    expected = X.copy()
    np.put_along_axis(expected, order, -9.0, axis=1)
    result, index = run(body, X)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(index, order)


def test_range_select_keeps_a_range_of_positions():
    low, high = np.full((128, 1), 5, np.float32), np.full((128, 1), 20, np.float32)

    def body(a, low, high):
        result, top = tile((128, 48)), tile((128, 1))
        nisa.range_select(
            dst=result, on_true_tile=a, comp_op0=nl.greater_equal, comp_op1=nl.less, bound0=low, bound1=high,
            reduce_res=top, range_start=2,
        )  # fmt: skip
        return result, top

    place = np.arange(48) + 2
    inside = (place >= 5) & (place < 20)
    result, top = run(body, X, low, high)
    np.testing.assert_array_equal(result, np.where(inside, X, np.finfo(np.float32).min))
    np.testing.assert_array_equal(top[:, 0], X[:, inside].max(axis=1))


def test_select_reduce_chooses_and_takes_the_maximum():
    predicate = integers(128, 48, high=2, dtype=np.uint8)

    def body(a, p):
        result, top = tile((128, 48)), tile((128, 1))
        nisa.select_reduce(
            dst=result, predicate=p, on_true=a, on_false=-5.0, reduce_res=top,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )  # fmt: skip
        return result, top

    expected = np.where(predicate != 0, X, np.float32(-5))
    result, top = run(body, X, predicate)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(top[:, 0], expected.max(axis=1))


def test_tensor_reduce_takes_the_number_of_last_dimensions():
    x = floats(4, 6, 10)

    def body(data):
        top = tile((4, 6))
        nisa.tensor_reduce(top, nl.maximum, data, axis=1)
        return top

    np.testing.assert_array_equal(run(body, x), x.max(axis=2))
