"""The engines' generators: XORWOW by its definition, lane by lane."""

from __future__ import annotations

import numpy as np

from neuron_tools.nki.random_stream import WORDS, RandomStream

MASK = 0xFFFFFFFF


def xorwow(state, count):
    """The generator of Marsaglia's paper, in Python's integers: x, y, z, w, v and the counter d."""
    x, y, z, w, v, d = (int(word) for word in state)
    made = []
    for _ in range(count):
        t = x ^ (x >> 2)
        x, y, z, w = y, z, w, v
        v = (v ^ (v << 4) ^ t ^ (t << 1)) & MASK
        d = (d + 362437) & MASK
        made.append((v + d) & MASK)
    return made


def test_every_lane_is_a_xorwow_generator():
    stream = RandomStream()
    states = np.random.default_rng(0).integers(0, 2**32, (5, WORDS), np.uint32)
    stream.load(states, first=32)
    found = np.concatenate([stream.bits(5, 7, first=32), stream.bits(5, 4, first=32)], 1)
    np.testing.assert_array_equal(found, [xorwow(state, 11) for state in states])


def test_the_papers_first_number():
    stream = RandomStream()
    stream.load(np.array([[123456789, 362436069, 521288629, 88675123, 5783321, 6615241]], np.uint32))
    assert stream.bits(1, 1)[0, 0] == 246875399


def test_four_generators_of_a_lane_take_turns():
    stream = RandomStream(generators=4)
    states = np.random.default_rng(1).integers(0, 2**32, (2, 4, WORDS), np.uint32)
    stream.load(states.reshape(2, -1))
    found = np.concatenate([stream.bits(2, 6), stream.bits(2, 6)], 1)
    for lane in range(2):
        for number in range(4):
            np.testing.assert_array_equal(found[lane, number::4], xorwow(states[lane, number], 3))


def test_numbers_are_uniform():
    numbers = RandomStream(seed=3).uniform(128, 4096)
    assert 0 <= numbers.min() < 1e-4
    assert 1 - 1e-4 < numbers.max() < 1
    counts = np.histogram(numbers, 16, (0, 1))[0]
    assert abs(counts / numbers.size * 16 - 1).max() < 0.02


def test_a_seed_gives_every_lane_its_own_stream():
    one, same, other = RandomStream(seed=3), RandomStream(seed=3), RandomStream(seed=4)
    first = one.bits(128, 4)
    np.testing.assert_array_equal(first, same.bits(128, 4))
    assert len(np.unique(first)) == first.size
    assert (first != other.bits(128, 4)).all()
