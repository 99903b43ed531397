"""Ways in which published kernels of the older dialect index, restrict and share tiles."""

from __future__ import annotations

import functools

import numpy as np

from neuron_tools.compat.neuronxcc import nki
from neuron_tools.compat.neuronxcc.nki import compiler as ncc, isa as nisa, language as nl
from neuron_tools.compat.neuronxcc.nki.isa import constants as isa_constants
from neuron_tools.compat.neuronxcc.nki.language import constants
from tests.unit.nki.kernels import floats, integers


def test_a_loaded_index_selects_among_weights():
    @nki.jit
    def kernel(weights, index):
        chosen = nl.load(index[0:1, 0:1])
        rows, halves, columns = nl.mgrid[0:64, 0:2, 0:8]
        picked = nl.load(weights[chosen[0, 0], rows, halves, columns], mode=nisa.oob_mode.error)
        sliced = nl.load(weights[chosen[0, 0], 0:64, 1, :])
        assert (picked.shape, sliced.shape) == ((64, 2, 8), (64, 8))
        out = nl.ndarray((64, 2, 8), dtype=weights.dtype, buffer=nl.shared_hbm)
        half = nl.ndarray((64, 8), dtype=weights.dtype, buffer=nl.shared_hbm)
        nl.store(out, picked)
        nl.store(half, sliced)
        return out, half

    weights = floats(4, 64, 2, 8)
    picked, sliced = kernel(weights, np.array([[2]], np.int32))
    np.testing.assert_array_equal(picked, weights[2])
    np.testing.assert_array_equal(sliced, weights[2, :, 1])


def test_rows_gathered_by_a_tile_of_indices():
    @nki.jit
    def kernel(x, index):
        chosen = nl.load(index)
        rows, columns = nl.mgrid[0:128, 0:24]
        out = nl.ndarray((128, 24), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out[rows, columns], nl.load(x[chosen[rows, 0], columns], mode=nisa.oob_mode.skip))
        return out

    x, index = floats(300, 24), integers(128, 1, high=300)
    np.testing.assert_array_equal(kernel(x, index), x[index[:, 0]])


def test_traced_functions_fill_the_callers_tiles():
    @nki.jit(mode="trace")
    def load_scaled(source, tiles, scale):
        for i in nl.affine_range(tiles.shape[0]):
            tiles[i, :, :] = nl.load(source[:, nl.ds(i * 32, 32)], dtype=tiles.dtype) * scale

    @nki.jit
    def kernel(x):
        batch, head = nl.program_id(0), nl.program_id(1)
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tiles = nl.zeros((2, nl.par_dim(16), 32), dtype=nl.float32)
        load_scaled(x[batch, head], tiles, 2.0)
        for i in nl.affine_range(2):
            nl.store(out[batch, head, :, nl.ds(i * 32, 32)], tiles[i])
        return out

    x = floats(2, 3, 16, 64)
    np.testing.assert_array_equal(kernel[2, 3](x), x * 2)


def test_a_tile_restricted_by_a_mask_beside_an_identity_of_bytes():
    @nki.jit
    def kernel(image):
        channels, _, batch = image.shape
        identity, tile = nl.load(nl.shared_identity_matrix(channels)), nl.load(image)
        rows, columns = nl.arange(channels)[:, None, None], nl.arange(24)[None, :, None]
        each = nl.arange(batch)[None, None, :]
        total = nl.ndarray((channels, 24, batch), dtype=np.float32, buffer=nl.psum)
        for shift in nl.affine_range(3):
            window = tile[rows, columns + shift, each][(columns < 24) & (each < batch)]
            total[rows, columns, each] += nisa.nc_matmul(identity, window)
        out = nl.ndarray(total.shape, dtype=np.float32, buffer=nl.shared_hbm)
        nl.store(out, nisa.tensor_copy(total))
        return out

    image = floats(16, 26, 3)
    np.testing.assert_allclose(
        kernel(image), image[:, :24] + image[:, 1:25] + image[:, 2:26], rtol=1e-5, atol=1e-5
    )


def test_overlapping_index_expressions_of_five_dimensions():
    """Bilinear interpolation's core: four shifted reads, written two by two between the pixels."""

    @nki.jit
    def kernel(image):
        channels, height, width = image.shape
        tile = nl.load(image)
        large = nl.zeros((channels, 2 * height, 2 * width), dtype=image.dtype)
        c = nl.arange(channels)[:, None, None, None, None]
        y, x = (
            nl.arange(height - 1)[None, None, None, :, None],
            nl.arange(width - 1)[None, None, None, None, :],
        )
        down, right = nl.arange(2)[None, :, None, None, None], nl.arange(2)[None, None, :, None, None]
        near_y, near_x, far_y, far_x = y + down, x + right, y + (-1 * down + 1), x + (-1 * right + 1)
        large[c, 2 * y + 1 + down, 2 * x + 1 + right] = (
            9 / 16 * tile[c, near_y, near_x]
            + 3 / 16 * tile[c, far_y, near_x]
            + 3 / 16 * tile[c, near_y, far_x]
            + 1 / 16 * tile[c, far_y, far_x]
        )
        out = nl.ndarray(large.shape, dtype=image.dtype, buffer=nl.shared_hbm)
        nl.store(out, large)
        return out

    image = floats(8, 5, 6)
    near, far = image[:, :-1], image[:, 1:]
    rows = np.stack([0.75 * near + 0.25 * far, 0.25 * near + 0.75 * far], axis=2).reshape(8, -1, 6)
    near, far = rows[:, :, :-1], rows[:, :, 1:]
    expected = np.stack([0.75 * near + 0.25 * far, 0.25 * near + 0.75 * far], axis=3).reshape(8, 8, 10)
    np.testing.assert_allclose(np.asarray(kernel(image))[:, 1:-1, 1:-1], expected, rtol=1e-5, atol=1e-6)


def test_placed_tiles_in_banks_of_the_kernels_choice():
    def bank(idx, pdim_size, fdim_size, banks):
        return banks[idx], 0, 0

    @nki.jit
    def kernel(a):
        placed = ncc.sbuf.mod_alloc(base_addr=0, num_free_tiles=(2,))
        x = nl.ndarray((2, nl.par_dim(128), 128), dtype=np.float32, buffer=placed)
        place = functools.partial(bank, banks={(0,): 1, (1,): 5})
        products = nl.ndarray((2, nl.par_dim(128), 128), dtype=np.float32, buffer=ncc.psum.alloc(place))
        out = nl.ndarray((2, 128, 64), dtype=np.float32, buffer=nl.shared_hbm)
        rows, columns = nl.mgrid[0:128, 0:128]
        for i in nl.affine_range(2):
            x[i, rows, columns] = nl.load(a[i * 128 + rows, columns])
            for _ in nl.affine_range(2):
                products[i] += nisa.nc_matmul(moving=x[i, rows, columns], stationary=x[i, rows, columns])
            top = nisa.tensor_reduce(np.max, data=products[i], axis=(1,), dtype=np.float32, negate=True)
            nl.store(out[i], nl.copy(nl.divide(1.0, top).broadcast_to((128, 64))))
        return out

    a = floats(256, 128)
    parts = a.reshape(2, 128, 128)
    expected = -1 / (2 * np.einsum("bij,bik->bjk", parts, parts)).max(axis=-1, keepdims=True)
    np.testing.assert_allclose(kernel(a), np.broadcast_to(expected, (2, 128, 64)), rtol=1e-4)


def test_modules_of_constants():
    assert isa_constants.oob_mode is nisa.oob_mode
    assert constants.sizeinbytes(nl.bfloat16) == 2
