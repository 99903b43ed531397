from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.errors import NkiValidationError, OutOfBoundsError
from neuron_tools.nki.layout import reshape_strides, row_major
from tests.unit.nki.kernels import floats, integers, run, run_raw, tile

X = floats(16, 4, 6, 8)


def view_of(take):
    """Run a kernel that takes a view of a tensor in HBM, and give the view's elements."""
    seen = []

    def kernel(a):
        seen.append(take(a).array.copy())
        return a

    run_raw(kernel, X)
    return seen[0]


@pytest.mark.parametrize(
    ("take", "expected"),
    [
        (lambda t: t[2:10, 1, :, 3:5], X[2:10, 1, :, 3:5]),
        (lambda t: t[..., 2], X[..., 2]),
        (lambda t: t[2:10, 1, :, 3:5][...], X[2:10, 1, :, 3:5]),
        (lambda t: t[2:10, 1].rearrange("p a b -> p b a")[...], X[2:10, 1].transpose(0, 2, 1)),
        (lambda t: t[:, None, 0], X[:, None, 0]),
        (lambda t: t[1:15:3, ::2], X[1:15:3, ::2]),
        (lambda t: t[-2], X[-2]),
        (lambda t: t[nl.ds(3, 4)], X[3:7]),
        (lambda t: t.permute(2, 0, 3, 1), X.transpose(2, 0, 3, 1)),
        (lambda t: t.permute(dims=[2, 0, 3, 1]), X.transpose(2, 0, 3, 1)),
        (lambda t: t.reshape((64, 48)), X.reshape(64, 48)),
        (lambda t: t.reshape(shape=(64, 48)), X.reshape(64, 48)),
        (lambda t: t.reshape(16, -1), X.reshape(16, -1)),
        (lambda t: t.reshape_dim(3, (2, -1)), X.reshape(16, 4, 6, 2, 4)),
        (lambda t: t.flatten_dims(1, 2), X.reshape(16, 24, 8)),
        (lambda t: t[:, :1].broadcast(1, 5), np.broadcast_to(X[:, :1], (16, 5, 6, 8))),
        (lambda t: t[0, 0, :, 0:1].broadcast_to((6, 9)), np.broadcast_to(X[0, 0, :, 0:1], (6, 9))),
        (lambda t: t.expand_dim(1), X[:, None]),
        (lambda t: t.base_tensor, X),
        (lambda t: t[3:5, 1].base_tensor, X),
        (lambda t: t.permute(2, 0, 3, 1).base_tensor, X),
        (lambda t: t.reshape((64, 48)).base_tensor, X.reshape(64, 48)),
        (lambda t: t.view(nl.uint32).base_tensor, X.view(np.uint32)),
        (lambda t: t[:, 1:2].squeeze_dim(1), X[:, 1]),
        (lambda t: t.slice(1, 1, 4, step=2), X[:, 1:4:2]),
        (lambda t: t.select(2, 3), X[:, :, 3]),
        (
            lambda t: t.rearrange("p (a b) c d -> p b a (c d)", a=2),
            X.reshape(16, 2, 2, 6, 8).transpose(0, 2, 1, 3, 4).reshape(16, 2, 2, 48),
        ),
        (lambda t: t.rearrange(("p", "a", "b", "c"), ("p", "c", "a", "b")), X.transpose(0, 3, 1, 2)),
        (
            lambda t: t.rearrange(
                src_pattern=("p", ("a", "b"), "c", "d"),
                dst_pattern=("p", "b", "a", "c", "d"),
                fixed_sizes={"a": 2},
            ),
            X.reshape(16, 2, 2, 6, 8).transpose(0, 2, 1, 3, 4),
        ),
        (lambda t: t.ap(pattern=[[192, 16], [1, 8]], offset=None), X[:, 0, 0]),
        (lambda t: t.ap(pattern=[[192, 16], [8, 6], [1, 4]], offset=50), None),
    ],
)
def test_views_show_the_elements_that_numpy_would(take, expected):
    if expected is None:
        flat = X.reshape(-1)
        index = 50 + 192 * np.arange(16)[:, None, None] + 8 * np.arange(6)[:, None] + np.arange(4)
        expected = flat[index]
    np.testing.assert_array_equal(view_of(take), expected)


@pytest.mark.parametrize(
    ("take", "expected"),
    [
        (lambda t: t[:, 2:4].ap(pattern=[[96, 16], [1, 8]]), X[:, 2, 0]),
        (lambda t: t[:, 2:4].ap(pattern=[[96, 8], [1, 8]], offset=3 * 96 + 48), X[3:11, 3, 0]),
        (lambda t: t[:, 2:4].ap(pattern=[[192, 16], [1, 8]]), X[:, 2, 0]),
        (
            lambda t: t[:, 2:4].ap(pattern=[[192, 16], [1, 8]], dtype=nl.uint16),
            X.view(np.uint16)[:, 2, 0, :8],
        ),
    ],
)
def test_a_pattern_on_a_part_of_a_tile_steps_from_partition_to_partition(take, expected):
    def part(t):
        held = tile(X.shape)
        nisa.dma_copy(held, t)
        return take(held)

    np.testing.assert_array_equal(view_of(part), expected)


def test_indirection_takes_elements_of_the_free_dimension():
    """16 partitions share the positions that they hold, taken along the partitions first."""
    data, index = floats(32, 40), integers(32, 2, high=40, dtype=np.uint32)

    def body(data, index):
        picked = tile((32, 20))
        nisa.tensor_copy(picked, data.indirect(index, num_elem=20))
        return picked

    each = np.arange(20)
    chosen = np.concatenate(
        [np.tile(part[each % 16, each // 16], (16, 1)) for part in index.reshape(2, 16, 2)]
    )
    np.testing.assert_array_equal(run(body, data, index), np.take_along_axis(data, chosen, axis=1))


def test_contiguity_counts_within_partitions():
    seen = []

    def kernel(a):
        held = tile((16, 4, 8))
        seen.extend([held.is_contiguous(), held[::2].is_contiguous(), held[:, ::2].is_contiguous()])
        return a

    run_raw(kernel, X)
    assert seen == [True, True, False]


def test_merging_dimensions_that_do_not_lie_together_is_refused():
    with pytest.raises(NkiValidationError, match="do not lie together"):
        view_of(lambda t: t.permute(1, 0, 2, 3).flatten_dims(0, 1))


def test_views_as_another_type_share_the_bytes():
    seen = []

    def kernel(a):
        wide = a.view(nl.uint8)
        seen.append((wide.shape, wide.array.copy(), a.reinterpret_cast(nl.int32).array.copy()))
        return a

    a = integers(4, 6, dtype=np.uint32)
    run_raw(kernel, a)
    shape, octets, words = seen[0]
    assert shape == (4, 24)
    np.testing.assert_array_equal(octets, a.view(np.uint8))
    np.testing.assert_array_equal(words, a.view(np.int32))


def test_metadata_of_views():
    def kernel(a):
        part = a[0:8, 1]
        assert part.shape == (8, 6, 8)
        assert part.ndim == 3
        assert part.size == 384
        assert part.get_pattern() == [[192, 8], [8, 6], [1, 8]]
        assert not part.is_contiguous()
        assert a.is_contiguous()
        assert not a.is_indirect()
        assert part.dtype == nl.float32 == np.float32
        assert part.buffer == nl.hbm
        assert nl.is_hbm(part.buffer)
        assert not nl.is_on_chip(part.buffer)
        assert tile((4, 4)).buffer is nl.sbuf
        assert nl.is_sbuf(tile((4, 4)).buffer)
        assert nl.is_psum(tile((4, 4), buffer=nl.psum).buffer)
        return a

    run_raw(kernel, X)


@pytest.mark.parametrize(
    "take", [lambda t: t[0:17], lambda t: t[20], lambda t: t[:, 3:9], lambda t: t[0, 0, 0, 0, 0]]
)
def test_indices_outside_the_tensor_are_refused_with_the_line(take):
    with pytest.raises(NkiValidationError, match=r"test_tensor\.py"):
        view_of(take)


def test_an_access_pattern_outside_the_storage_is_refused():
    with pytest.raises(OutOfBoundsError, match="reaches element"):
        view_of(lambda t: t.ap(pattern=[[192, 17], [1, 4]]))


def test_the_partition_dimension_cannot_be_permuted_on_chip():
    def body(a):
        return a.permute(1, 0)

    with pytest.raises(NkiValidationError, match="partition dimension"):
        run(body, floats(16, 8))


def test_assignment_copies_fills_and_converts():
    def body(a):
        result = tile((16, 8))
        result[...] = 1.0
        result[:, 0:4] = a[:, 4:8]
        result[0:1, 7] = 5.0
        return result

    a = floats(16, 8)
    expected = np.ones((16, 8), np.float32)
    expected[:, 0:4] = a[:, 4:8]
    expected[0, 7] = 5
    np.testing.assert_array_equal(run(body, a), expected)


def test_python_operators_compute_tiles():
    def body(a, b):
        result = -(a + b) * 2.0 / (1.0 - b)
        result += a
        result -= 0.25
        result *= b
        return result

    a, b = floats(16, 8), floats(16, 8, seed=1, low=2.0, high=3.0)
    expected = ((-(a + b) * 2 / (1 - b)) + a - 0.25) * b
    np.testing.assert_allclose(run(body, a, b), expected, rtol=1e-5, atol=1e-5)


shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


@given(shape=shapes, order=st.randoms(use_true_random=False), data=st.data())
@settings(max_examples=150, deadline=None)
def test_reshaping_agrees_with_numpy_or_needs_a_copy(shape, order, data):
    size = int(np.prod(shape))
    axes = list(range(len(shape)))
    order.shuffle(axes)
    base = np.arange(size).reshape(shape).transpose(axes)
    wanted = data.draw(st.sampled_from(_shapes_of(size)))
    strides = reshape_strides(base.shape, tuple(s // 8 for s in base.strides), wanted)
    if strides is not None:
        view = np.lib.stride_tricks.as_strided(base, wanted, [s * 8 for s in strides])
        np.testing.assert_array_equal(view, base.reshape(wanted))
    else:
        assert not np.shares_memory(base.reshape(wanted), base)


def _shapes_of(size):
    shapes = [(size,)]
    for first in range(1, size + 1):
        if size % first == 0:
            shapes += [(first, size // first), (1, first, size // first)]
    return shapes


def test_row_major_strides():
    assert row_major((2, 3, 4)) == (12, 4, 1)
    assert row_major(()) == ()


def test_a_register_or_a_tile_may_select():
    def kernel(a, index):
        chosen = tile((1, 1), nl.int32)
        nisa.dma_copy(chosen, index)
        result = nl.ndarray((4, 6, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        block = tile((4, 6, 8))
        nisa.dma_copy(block, a.select(0, chosen))
        nisa.dma_copy(result, block)
        return result

    np.testing.assert_array_equal(run_raw(kernel, X, np.array([[5]], np.int32)).outputs, X[5])


@pytest.mark.parametrize(
    ("shape", "key", "expected"),
    [
        ((8, 1, 6), (slice(None), 0), (8, 6)),
        ((1, 1, 6), (slice(None), 0), (1, 6)),
        ((1, 1, 6), 0, (1, 1, 6)),
        ((8, 1, 1), (slice(None), 0), (8, 1)),
        ((8, 1, 6), 3, (1, 1, 6)),
        ((8, 2, 6), (slice(None), 1), (8, 6)),
    ],
)
def test_a_number_takes_any_dimension_but_the_partitions(shape, key, expected):
    seen = []

    def kernel(a):
        seen.append(tile(shape)[key].shape)
        return a

    run_raw(kernel, X)
    assert seen == [expected]
