from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.microscaling import quantized, scale_partitions, unpacked
from tests.unit.nki.kernels import floats, integers, run, tile

A, B = floats(128, 64), floats(128, 256, seed=1)


def test_nc_matmul_contracts_over_the_partitions():
    def body(a, b):
        result = tile((64, 256), buffer=nl.psum)
        nisa.nc_matmul(dst=result, stationary=a, moving=b)
        return result

    np.testing.assert_allclose(run(body, A, B), A.T @ B, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("accumulate", "times"), [(None, 2), (True, 2), (False, 1)])
def test_accumulation_follows_the_flag(accumulate, times):
    def body(a, b):
        result = tile((64, 256), buffer=nl.psum)
        nisa.nc_matmul(result, a, b)
        nisa.nc_matmul(result, a, b, accumulate=accumulate)
        return result

    np.testing.assert_allclose(run(body, A, B), times * (A.T @ B), rtol=1e-4, atol=1e-4)


def test_bf16_products_accumulate_in_fp32():
    a, b = A.astype(ml_dtypes.bfloat16), B.astype(ml_dtypes.bfloat16)

    def body(a, b):
        result = tile((64, 256), buffer=nl.psum)
        nisa.nc_matmul(result, a, b)
        return result

    expected = a.astype(np.float32).T @ b.astype(np.float32)
    np.testing.assert_allclose(run(body, a, b), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("mode", ["none", nisa.matmul_perf_mode.none])
def test_a_perf_mode_may_be_given_by_its_name(mode):
    def body(a, b):
        result = tile((64, 256), buffer=nl.psum)
        nisa.nc_matmul(result, a, b, perf_mode=mode)
        return result

    np.testing.assert_allclose(run(body, A, B), A.T @ B, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["double_row", nisa.matmul_perf_mode.double_row])
def test_double_row_contracts_over_two_rows_of_each_partition(mode):
    a = floats(128, 2, 32).astype(ml_dtypes.float8_e4m3)
    b = floats(128, 2, 64, seed=1).astype(ml_dtypes.float8_e5m2)

    def body(a, b):
        result = tile((32, 64), buffer=nl.psum)
        nisa.nc_matmul(result, a, b, perf_mode=mode)
        return result

    expected = np.einsum("krm,krn->mn", a.astype(np.float32), b.astype(np.float32))
    np.testing.assert_allclose(run(body, a, b), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_nc_transpose_on_the_tensor_engine_moves_bits(dtype):
    a = np.where(np.arange(64) == 3, np.inf, floats(128, 64)).astype(dtype)

    def body(a):
        result = tile((64, 128), a.dtype, nl.psum)
        nisa.nc_transpose(dst=result, data=a)
        return result

    np.testing.assert_array_equal(run(body, a), a.T)


def test_nc_transpose_on_the_vector_engine_turns_small_tiles():
    a = integers(32, 16)

    def body(a):
        result = tile((16, 32), nl.int32)
        nisa.nc_transpose(result, a, engine=nisa.vector_engine)
        return result

    np.testing.assert_array_equal(run(body, a), a.T)


def test_a_matmul_with_the_identity_transposes():
    a = floats(128, 64)

    def body(a, identity):
        result = tile((64, 128), buffer=nl.psum)
        nisa.nc_matmul(result, stationary=a, moving=identity, is_transpose=True, is_moving_onezero=True)
        return result

    np.testing.assert_array_equal(run(body, a, np.eye(128, dtype=np.float32)), a.T)


@pytest.mark.parametrize("packed", [nl.float8_e4m3fn_x4, nl.float8_e5m2_x4])
def test_quantize_mx_and_nc_matmul_mx_multiply_scaled_groups(packed):
    a = floats(128, 256).astype(ml_dtypes.bfloat16)
    b = floats(128, 512, seed=1).astype(ml_dtypes.bfloat16)

    def body(a, b):
        parts = []
        for source in (a, b):
            width = source.shape[1] // 4
            data, scale = tile((128, width), packed), tile((128, width), nl.uint8)
            nisa.memset(scale, 0)
            nisa.quantize_mx(dst=data, src=source, dst_scale=scale)
            parts.append((data, scale))
        result = tile((64, 128), buffer=nl.psum)
        nisa.nc_matmul_mx(
            dst=result, stationary=parts[0][0], moving=parts[1][0], stationary_scale=parts[0][1],
            moving_scale=parts[1][1],
        )  # fmt: skip
        return result

    expected = np.zeros((64, 128), np.float32)
    for lane in range(4):
        expected += a.astype(np.float32)[:, lane::4].T @ b.astype(np.float32)[:, lane::4]
    found = run(body, a, b, target="trn3")
    assert np.linalg.norm(found - expected) < 0.1 * np.linalg.norm(expected)


def test_quantized_groups_share_one_exponent():
    values = floats(64, 16, low=-100, high=100)
    packed, exponents = quantized(values, nl.float8_e4m3fn_x4)
    assert exponents.shape == (8, 4)
    scale = np.exp2(exponents.astype(np.float32) - 127)
    back = unpacked(packed, nl.float8_e4m3fn_x4) * np.repeat(scale, 8, axis=0)[:, :, None]
    np.testing.assert_allclose(back.reshape(64, 16), values, atol=np.abs(values).max() / 14)


def test_scales_lie_on_the_first_partitions_of_each_quadrant():
    np.testing.assert_array_equal(scale_partitions(64, 64), [0, 1, 2, 3, 32, 33, 34, 35])
    np.testing.assert_array_equal(scale_partitions(64, 8), np.arange(8))


def test_fp4_values_are_unpacked_from_nibbles():
    packed = np.array([[0x4321]], np.uint16)
    expected = np.array([1, 2, 3, 4], np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    np.testing.assert_array_equal(unpacked(packed, nl.float4_e2m1fn_x4)[0, 0], expected)
