from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.errors import NkiValidationError
from tests.unit.nki.kernels import floats, integers, run, tile

X, Y = floats(128, 64), floats(128, 64, seed=1)
COLUMN = floats(128, 1, seed=2)

BINARY = {
    nl.add: np.add,
    nl.subtract: np.subtract,
    nl.multiply: np.multiply,
    nl.maximum: np.maximum,
    nl.minimum: np.minimum,
    nl.divide: np.divide,
    nl.equal: np.equal,
    nl.not_equal: np.not_equal,
    nl.greater: np.greater,
    nl.greater_equal: np.greater_equal,
    nl.less: np.less,
    nl.less_equal: np.less_equal,
    nl.logical_and: np.logical_and,
    nl.logical_or: np.logical_or,
    nl.logical_xor: np.logical_xor,
    nl.abs_max: lambda a, b: np.maximum(abs(a), abs(b)),
    nl.abs_min: lambda a, b: np.minimum(abs(a), abs(b)),
    nl.mod: np.mod,
    nl.fmod: np.fmod,
    np.add: np.add,
    np.multiply: np.multiply,
}


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
def test_tensor_tensor_computes_in_fp32(op):
    def body(a, b):
        result = tile((128, 64))
        nisa.tensor_tensor(dst=result, data1=a, data2=b, op=op)
        return result

    np.testing.assert_allclose(run(body, X, Y), BINARY[op](X, Y).astype(np.float32), rtol=1e-6)


def test_results_are_rounded_once_when_they_are_written():
    def body(a, b):
        result = tile((128, 64), nl.bfloat16)
        nisa.tensor_tensor(result, a, b, nl.multiply)
        return result

    expected = (X * Y).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(run(body, X, Y), expected)


def test_bf16_operands_are_widened_before_they_are_combined():
    a, b = X.astype(ml_dtypes.bfloat16), Y.astype(ml_dtypes.bfloat16)

    def body(a, b):
        result = tile((128, 64))
        nisa.tensor_tensor(result, a, b, nl.multiply)
        return result

    np.testing.assert_array_equal(run(body, a, b), a.astype(np.float32) * b.astype(np.float32))


def test_integers_of_32_bits_are_combined_exactly():
    a = integers(128, 8, high=2**30)
    b = integers(128, 8, seed=1, high=2**30)

    def body(a, b):
        result = tile((128, 8), nl.int32)
        nisa.tensor_tensor(result, a, b, nl.add)
        return result

    np.testing.assert_array_equal(run(body, a, b), a + b)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (nl.bitwise_and, np.bitwise_and),
        (nl.bitwise_or, np.bitwise_or),
        (nl.bitwise_xor, np.bitwise_xor),
        (nl.left_shift, np.left_shift),
        (nl.right_shift, np.right_shift),
    ],
)
def test_bitwise_operators_work_on_bit_patterns(op, expected):
    a, b = integers(128, 8), integers(128, 8, seed=1, high=4)

    def body(a, b):
        result = tile((128, 8), nl.int32)
        nisa.tensor_tensor(result, a, b, op, engine=nisa.vector_engine)
        return result

    np.testing.assert_array_equal(run(body, a, b), expected(a, b))


def test_invert_flips_bits():
    a = integers(128, 8, dtype=np.uint8)

    def body(a):
        return nl.invert(a)

    np.testing.assert_array_equal(run(body, a), ~a)


def test_tensor_scalar_applies_two_operators_with_numbers_and_columns():
    def body(a, column):
        result = tile((128, 64))
        nisa.tensor_scalar(result, a, op0=nl.multiply, operand0=column, op1=nl.add, operand1=0.5)
        return result

    np.testing.assert_allclose(run(body, X, COLUMN), X * COLUMN + 0.5, rtol=1e-6)


def test_tensor_scalar_swaps_operands_when_told():
    def body(a):
        result = tile((128, 64))
        nisa.tensor_scalar(
            result, a, nl.subtract, 1.0, reverse0=True, op1=nl.divide, operand1=2.0, reverse1=True
        )
        return result

    np.testing.assert_allclose(run(body, X), 2.0 / (1.0 - X), rtol=1e-5)


def test_tensor_scalar_scales_and_moves_indices_exactly():
    index, scale = integers(128, 8, high=2**20), integers(128, 1, high=2**10)

    def body(index, scale):
        result = tile((128, 8), nl.int32)
        nisa.tensor_scalar(result, index, nl.multiply, scale, op1=nl.add, operand1=3)
        return result

    np.testing.assert_array_equal(run(body, index, scale), index * scale + 3)


def test_tensor_scalar_scales_an_index_by_a_whole_number_exactly():
    index = np.full((128, 1), 2**24 + 1, np.int32)

    def body(index):
        result = tile((128, 1), nl.int32)
        nisa.tensor_scalar(result, index, nl.multiply, 3)
        return result

    np.testing.assert_array_equal(run(body, index), index * 3)


def test_tensor_scalar_tells_which_addresses_lie_in_a_range():
    address = np.arange(2**31 - 64, 2**31 + 64, dtype=np.uint32).reshape(128, 1)
    start, size = np.full((128, 1), 2**31 - 1, np.uint32), np.full((128, 1), 4, np.uint32)

    def body(address, start, size):
        result = tile((128, 1), nl.uint8)
        nisa.tensor_scalar(result, address, nl.subtract, start, op1=nl.less, operand1=size)
        return result

    np.testing.assert_array_equal(run(body, address, start, size), address - start < size)


def test_tensor_scalar_takes_integer_tiles_for_addresses_only():
    def body(index, scale):
        result = tile((128, 8), nl.int32)
        nisa.tensor_scalar(result, index, nl.add, scale)
        return result

    with pytest.raises(NkiValidationError, match="takes operand0 as float32, got int32"):
        run(body, integers(128, 8), integers(128, 1))


def test_tensor_scalar_masks_bits():
    a = integers(128, 8, high=2**31 - 1)

    def body(a):
        result = tile((128, 8), nl.int32)
        nisa.tensor_scalar(result, a, nl.bitwise_and, 0xFF, op1=nl.left_shift, operand1=2)
        return result

    np.testing.assert_array_equal(run(body, a), (a & 0xFF) << 2)


def test_a_write_to_integers_rounds_to_even_and_saturates():
    a = np.array([[0.5, 1.5, 2.4, 300.0, -300.0, -0.5, 127.4, 2.6]], np.float32)

    def body(a):
        result = tile((1, 8), nl.int8)
        nisa.tensor_copy(result, a)
        return result

    np.testing.assert_array_equal(run(body, a), [[0, 2, 2, 127, -128, 0, 127, 3]])


def test_scalar_tensor_tensor_chains_a_scalar_and_a_tile():
    def body(a, b, column):
        result = tile((128, 64))
        nisa.scalar_tensor_tensor(result, a, nl.subtract, column, nl.multiply, b)
        return result

    np.testing.assert_allclose(run(body, X, Y, COLUMN), (X - COLUMN) * Y, rtol=1e-6)


@pytest.mark.parametrize("engine", [nisa.vector_engine, nisa.scalar_engine, nisa.gpsimd_engine])
def test_tensor_copy_keeps_every_bit_between_equal_types(engine):
    a = np.frombuffer(np.random.default_rng(0).bytes(128 * 16), np.uint8).reshape(128, 16)

    def body(a):
        result = tile((128, 16), nl.uint8)
        nisa.tensor_copy(dst=result, src=a, engine=engine)
        return result

    np.testing.assert_array_equal(run(body, a), a)


@pytest.mark.parametrize("reverse", [False, True])
def test_tensor_copy_predicated_copies_where_the_predicate_holds(reverse):
    predicate = integers(128, 64, high=2, dtype=np.uint8)

    def body(a, b, p):
        nisa.tensor_copy_predicated(dst=a, src=b, predicate=p, reverse_pred=reverse)
        return a

    chosen = (predicate == 0) if reverse else (predicate != 0)
    np.testing.assert_array_equal(run(body, X, Y, predicate), np.where(chosen, Y, X))


def test_tensor_copy_predicated_takes_a_number():
    predicate = integers(128, 64, high=2, dtype=np.uint8)

    def body(a, p):
        nisa.tensor_copy_predicated(a, 7.0, p)
        return a

    np.testing.assert_array_equal(run(body, X, predicate), np.where(predicate != 0, np.float32(7), X))


def test_memset_fills_floats_and_integers():
    def body(a):
        whole = tile((128, 4), nl.uint16)
        nisa.memset(whole, 41)
        nisa.memset(a, value=1.5, engine=nisa.gpsimd_engine)
        return a, whole

    filled, whole = run(body, X)
    assert (filled == 1.5).all()
    assert (whole == 41).all()


def test_reciprocal_is_one_over_x():
    a = floats(128, 16, low=0.5)

    def body(a):
        nisa.reciprocal(dst=a, data=a)
        return a

    np.testing.assert_allclose(run(body, a), 1 / a, rtol=1e-6)


def test_exponential_subtracts_the_maximum_and_sums():
    def body(a, top):
        result, total = tile((128, 64)), tile((128, 1))
        nisa.exponential(result, a, max_value=top, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce)
        return result, total

    top = X.max(axis=1, keepdims=True)
    result, total = run(body, X, top, target="trn3")
    np.testing.assert_allclose(result, np.exp(X - top), rtol=1e-5)
    np.testing.assert_allclose(total, np.exp(X - top).sum(axis=1, keepdims=True), rtol=1e-5)


def test_one_operand_may_lie_in_psum():
    def body(a, b):
        moved = tile((128, 64), buffer=nl.psum)
        nisa.tensor_copy(moved, a)
        result = tile((128, 64))
        nisa.tensor_tensor(result, moved, b, nl.add)
        return result

    np.testing.assert_array_equal(run(body, X, Y), X + Y)


def test_tfloat32_keeps_ten_bits_of_mantissa():
    a = np.array([[1 + 2**-10, 1 + 2**-12, 1 + 2**-11 + 2**-12]], np.float32)

    def body(a):
        return on_chip_as(a, nl.tfloat32)

    def on_chip_as(a, dtype):
        result = tile((1, 3), dtype)
        nisa.tensor_copy(result, a)
        return result

    np.testing.assert_array_equal(run(body, a), np.array([[1 + 2**-10, 1, 1 + 2**-10]], np.float32))


@pytest.mark.parametrize(
    "dtype", ["float8_e4m3", "float8_e5m2", "float8_e4m3fn", "float16", "int16", "uint32"]
)
def test_small_types_store_what_ml_dtypes_would(dtype):
    a = floats(128, 16, low=0.0, high=16.0)

    def body(a):
        result = tile((128, 16), dtype)
        nisa.tensor_copy(result, a)
        back = tile((128, 16))
        nisa.tensor_copy(back, result)
        return back

    expected = np.rint(a) if "int" in dtype else a.astype(getattr(ml_dtypes, dtype, np.float16))
    np.testing.assert_array_equal(run(body, a), expected.astype(np.float32))
