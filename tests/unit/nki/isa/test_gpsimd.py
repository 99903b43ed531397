from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from neuron_tools.nki import isa as nisa, language as nl
from neuron_tools.nki.errors import NkiValidationError
from tests.unit.nki.kernels import floats, integers, run, tile

X = floats(128, 32)
P, F = np.arange(128)[:, None], np.arange(32)[None, :]


@pytest.mark.parametrize("dtype", [nl.int32, nl.float32, nl.uint16])
def test_iota_is_affine_in_partition_and_position(dtype):
    def body(_):
        result = tile((128, 4, 8), dtype)
        nisa.iota(dst=result, pattern=[[100, 4], [2, 8]], offset=5, channel_multiplier=3)
        return result

    grid = 5 + 3 * np.arange(128)[:, None, None] + 100 * np.arange(4)[:, None] + 2 * np.arange(8)
    np.testing.assert_array_equal(run(body, X), grid.astype(dtype))


@pytest.mark.parametrize(
    ("op", "expected"), [(nl.greater_equal, P * 2 - F >= 0), (nl.less, P * 2 - F < 0), (nl.equal, P * 2 == F)]
)
def test_affine_select_masks_by_position(op, expected):
    def body(a):
        result = tile((128, 32))
        nisa.affine_select(
            dst=result,
            pattern=[[-1, 32]],
            channel_multiplier=2,
            on_true_tile=a,
            on_false_value=-9.0,
            cmp_op=op,
        )
        return result

    np.testing.assert_array_equal(run(body, X), np.where(expected, X, np.float32(-9)))


def test_nc_n_gather_gathers_within_each_partition():
    index = integers(128, 20, high=32, dtype=np.uint32)

    def body(a, index):
        result = tile((128, 20))
        nisa.nc_n_gather(dst=result, data=a, indices=index)
        return result

    np.testing.assert_array_equal(run(body, X, index), np.take_along_axis(X, index.astype(int), axis=1))


def test_local_gather_takes_indices_of_each_group_of_16_partitions():
    index = integers(32, 2, high=32, dtype=np.uint16)
    source = X[:32]

    def body(a, index):
        result = tile((32, 32))
        nisa.local_gather(dst=result, src_buffer=a, index=index)
        return result

    expected = np.empty((32, 32), np.float32)
    for first in (0, 16):
        chosen = index[first : first + 16].T.reshape(-1)
        expected[first : first + 16] = source[first : first + 16][:, chosen]
    np.testing.assert_array_equal(run(body, source, index), expected)


def test_nonzero_with_count_writes_one_partition_of_each_core():
    a = integers(32, 12, high=2).astype(np.float32)

    def body(a):
        result = tile((32, 13), nl.int32)
        nisa.memset(result, 7)
        nisa.nonzero_with_count(dst=result, src=a, index_offset=10, padding_val=-1)
        return result

    found = run(body, a)
    for partition in (0, 16):
        places = np.flatnonzero(a[partition]) + 10
        expected = np.concatenate([places, np.full(12 - len(places), -1), [len(places)]])
        np.testing.assert_array_equal(found[partition], expected)
    assert (found[1:16] == 7).all()


@pytest.mark.parametrize(("op", "expected"), [(nl.add, np.sum), (nl.maximum, np.max)])
def test_tensor_partition_reduce_reduces_over_partitions(op, expected):
    def body(a):
        result = tile((1, 32))
        nisa.tensor_partition_reduce(dst=result, op=op, data=a)
        return result

    np.testing.assert_allclose(run(body, X), expected(X, axis=0, keepdims=True), rtol=1e-4, atol=1e-4)


def test_sequence_bounds_gives_start_and_end_of_each_run():
    ids = np.array([[1, 1, 2, 2, 2, 0, 3, 0]], np.float32)

    def body(ids):
        result = tile((1, 2, 8))
        nisa.sequence_bounds(dst=result, segment_ids=ids)
        return result

    start, end = run(body, ids)[0]
    np.testing.assert_array_equal(start, [0, 0, 2, 2, 2, 8, 6, 8])
    np.testing.assert_array_equal(end, [2, 2, 5, 5, 5, -1, 7, -1])


def test_topk_gives_the_largest_of_each_group_of_16_partitions():
    a = np.random.default_rng(0).permutation(16 * 8).reshape(16, 8).astype(ml_dtypes.bfloat16)

    def body(a):
        values, index = tile((16, 2), nl.bfloat16), tile((16, 2), nl.uint32)
        nisa.topk(values, index, a, n=128)
        return values, index

    values, index = run(body, a)
    assert sorted(values.astype(int).reshape(-1).tolist(), reverse=True) == list(range(127, 95, -1))
    flat = a.T.reshape(-1)
    np.testing.assert_array_equal(flat[index.astype(int)], values)


def test_nc_stream_shuffle_moves_partitions_within_quadrants():
    mask = [(i + 1) % 32 for i in range(32)]
    mask[5] = 255

    def body(a, b):
        nisa.nc_stream_shuffle(dst=b, src=a, shuffle_mask=mask)
        return b

    other = floats(128, 32, seed=3)
    expected = np.concatenate([np.roll(X[q : q + 32], -1, axis=0) for q in range(0, 128, 32)])
    expected[5::32] = other[5::32]
    np.testing.assert_array_equal(run(body, X, other), expected)


def test_nc_stream_shuffle_broadcasts_one_partition():
    def body(a):
        result = tile((32, 32))
        nisa.nc_stream_shuffle(src=a[0:1], dst=result, shuffle_mask=[0] * 32)
        return result

    np.testing.assert_array_equal(run(body, X[:32]), np.repeat(X[:1], 32, axis=0))


def test_random_numbers_are_reproducible_from_their_seed():
    def body(seed):
        first, second = tile((128, 16), nl.uint32), tile((128, 16), nl.uint32)
        nisa.set_rng_seed(seed)
        nisa.rng(dst=first)
        nisa.set_rng_seed(seed)
        nisa.rng(second)
        return first, second

    first, second = run(body, np.array([[42]], np.uint32))
    np.testing.assert_array_equal(first, second)
    assert len(np.unique(first)) > 2000


def test_rand_fills_a_range_uniformly():
    def body(_):
        whole = nl.rand((128, 64), nl.float32)
        part = tile((128, 64))
        nisa.rand2(dst=part, min=2.0, max=3.0)
        return whole, part

    whole, part = run(body, X, target="trn3")
    assert 0.45 < whole.mean() < 0.55
    assert part.min() >= 2
    assert part.max() < 3


def test_the_generator_state_can_be_stored_and_restored():
    def body(seeds):
        nisa.rand_set_state(seeds)
        state = tile((128, 6), nl.uint32)
        nisa.rand_get_state(dst=state)
        return state

    seeds = integers(128, 6, dtype=np.uint32)
    np.testing.assert_array_equal(run(body, seeds), seeds)


def test_a_restored_state_gives_the_same_stream_again():
    def body(_):
        state, first, second = (
            tile((128, 6), nl.uint32),
            tile((128, 16), nl.uint32),
            tile((128, 16), nl.uint32),
        )
        nisa.rng(dst=first, engine=nisa.engine.gpsimd)  # the state that is kept is not the first one
        nisa.rand_get_state(dst=state, engine=nisa.engine.gpsimd)
        nisa.rng(dst=first, engine=nisa.engine.gpsimd)
        nisa.rand_set_state(state, engine=nisa.engine.gpsimd)
        nisa.rng(dst=second, engine=nisa.engine.gpsimd)
        return first, second

    first, second = run(body, X)
    np.testing.assert_array_equal(first, second)
    assert len(np.unique(first)) == first.size


def test_lanes_with_one_seed_give_one_stream():
    def body(seeds):
        result = tile((128, 16), nl.uint32)
        nisa.rand_set_state(seeds, engine=nisa.engine.gpsimd)
        nisa.rng(dst=result, engine=nisa.engine.gpsimd)
        return result

    seeds = np.broadcast_to(np.arange(1, 7, dtype=np.uint32), (128, 6)).copy()
    seeds[1] += 1
    found = run(body, seeds)
    np.testing.assert_array_equal(found[2:], np.broadcast_to(found[0], (126, 16)))
    assert (found[1] != found[0]).all()


@pytest.mark.parametrize(
    ("shape", "engine", "target", "message"),
    [
        ((128, 5), nisa.engine.gpsimd, "trn2", "takes 6 words a partition on GpSimd"),
        ((128, 6), nisa.engine.vector, "trn3", "takes 24 words a partition on Vector"),
        ((128, 24), nisa.engine.vector, "trn2", "cannot reach the Vector engine"),
        ((128, 6), nisa.engine.gpsimd, "trn1", "cannot reach the GpSimd engine"),
    ],
)
def test_states_of_another_size_or_core_are_refused(shape, engine, target, message):
    with pytest.raises(NkiValidationError, match=message):
        run(lambda seeds: nisa.rand_set_state(seeds, engine=engine), np.ones(shape, np.uint32), target=target)


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_dropout_zeroes_with_the_given_probability(rate):
    a = np.ones((128, 64), np.float32)

    def body(a):
        result = tile((128, 64))
        nisa.dropout(dst=result, data=a, prob=rate)
        return result

    kept = run(body, a).mean()
    assert abs(kept - (1 - rate)) < 0.03


def test_registers_hold_numbers_and_drive_loops():
    def body(count):
        total, one = tile((1, 1), nl.int32), tile((1, 1), nl.int32)
        nisa.memset(total, 0)
        nisa.memset(one, 1)
        register = nisa.register_alloc()
        nisa.register_load(register, count)
        other = nisa.register_alloc(2)
        nisa.register_move(other, register)
        for _ in nl.dynamic_range(other):
            nisa.tensor_tensor(total, total, one, nl.add)
        nl.fori_loop(0, register, lambda i: nisa.tensor_tensor(total, total, one, nl.add))
        stored = tile((1, 1), nl.int32)
        nisa.register_store(stored, register)
        nisa.tensor_tensor(total, total, stored, nl.add)
        return total

    assert run(body, np.array([[4]], np.int32))[0, 0] == 12


def test_while_loop_runs_until_its_register_is_zero():
    def body(count):
        total, one = tile((1, 1), nl.int32), tile((1, 1), nl.int32)
        nisa.memset(total, 0)
        nisa.memset(one, 1)
        register = nisa.register_alloc()
        nisa.register_load(register, count)

        def step(condition):
            nisa.tensor_tensor(total, total, one, nl.add)
            return condition - 1

        nl.while_loop(register, step)
        return total

    assert run(body, np.array([[3]], np.int32))[0, 0] == 3
