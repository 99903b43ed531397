"""Arrays of NKI's element types on the host: packed types and conversions."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from neuron_tools.nki.dtypes import ALL, DType, as_dtype, float4_e2m1fn_x4, float8_e4m3fn_x4
from neuron_tools.nki.host_arrays import PACKED, host_dtype, static_cast


@pytest.mark.parametrize("name", sorted(PACKED))
def test_packed_values_come_back(name: str) -> None:
    values = np.array([[0.0, 1.0, -2.0, 6.0, 0.5, -1.5, 3.0, 4.0]], np.float32)
    packed = static_cast(values, name)
    assert packed.shape == (1, 2)
    assert as_dtype(packed.dtype) == name
    np.testing.assert_array_equal(static_cast(packed, np.float32), values)


def test_four_bits_lie_from_the_lowest_on_whatever_the_steps_of_the_array() -> None:
    values = np.array([[1.0, -2.0, 0.5, 6.0], [0.0, 0.0, 0.0, -6.0]], np.float32)
    packed = static_cast(np.asfortranarray(values), "float4_e2m1fn_x4")
    np.testing.assert_array_equal(packed.view(np.uint16), [[0x71C2], [0xF000]])
    np.testing.assert_array_equal(static_cast(packed[::-1], np.float32), values[::-1])


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (2, 0, 8)])
def test_arrays_without_elements_are_packed_and_come_back(shape: tuple[int, ...]) -> None:
    packed = static_cast(np.zeros(shape, np.float32), "float8_e4m3fn_x4")
    assert packed.shape == (*shape[:-1], shape[-1] // 4)
    assert static_cast(packed, np.float32).shape == shape


def test_packed_array_is_not_converted_by_numpy() -> None:
    with pytest.raises(TypeError):
        static_cast(np.ones((1, 4), np.float32), float8_e4m3fn_x4).astype(np.float32)


def test_four_values_lie_from_the_lowest_bits_up() -> None:
    packed = static_cast(np.array([[0.5, 1.0, 1.5, 2.0]], np.float32), float4_e2m1fn_x4)
    assert packed.view(np.uint16).tolist() == [[0x4321]]


def test_every_type_has_a_storage() -> None:
    assert {as_dtype(dtype.dtype).itemsize for dtype in ALL} <= {1, 2, 4, 8}


@pytest.mark.parametrize("packed", [float8_e4m3fn_x4, float4_e2m1fn_x4])
def test_numpy_knows_packed_types_by_name(packed: DType) -> None:
    assert np.dtype(packed) == host_dtype(packed)
    assert np.zeros((2, 3), packed).dtype == host_dtype(packed)


@pytest.mark.parametrize("name", sorted(PACKED))
def test_packed_type_is_called_by_its_name(name: str) -> None:
    packed = static_cast(np.ones((2, 8), np.float32), name)
    assert str(packed.dtype) == name
    assert {str(made.dtype) for made in (packed.T.copy(), np.stack([packed]), np.zeros(3, name))} == {name}


def test_packed_arrays_are_compared_by_their_bits() -> None:
    packed = static_cast(np.array([[1.0, 2.0, 3.0, 4.0] * 2], np.float32), float8_e4m3fn_x4)
    other = static_cast(np.array([[1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 6.0]], np.float32), float8_e4m3fn_x4)
    assert np.array_equal(packed, packed.copy())
    assert (packed == other).tolist() == [[True, False]]
    assert (packed != other).tolist() == [[False, True]]


@pytest.mark.parametrize("name", sorted(PACKED))
def test_packed_array_is_pickled_and_read_from_files(name: str, tmp_path: Path) -> None:
    packed = static_cast(np.linspace(-4, 4, 32, dtype=np.float32).reshape(2, 16), name)
    packed.tofile(tmp_path / "packed")
    read = np.fromfile(tmp_path / "packed", packed.dtype).reshape(packed.shape)
    assert np.array_equal(read, packed)
    assert np.array_equal(pickle.loads(pickle.dumps(packed)), packed)
