from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from neuron_tools.compiler.allocate import Allocator, OutOfOnChipMemory, latest


def test_reused_ranges_carry_the_tokens_of_their_last_use():
    allocator = Allocator(128)
    block = allocator.allocate(128)
    assert block.tokens == {}
    allocator.release(block, {1: 7})
    assert allocator.allocate(64).tokens == {1: 7}


def test_a_tile_over_two_freed_ranges_waits_for_both():
    allocator = Allocator(64)
    first, second = allocator.allocate(32), allocator.allocate(32)
    allocator.release(first, {1: 5})
    allocator.release(second, {2: 9})
    assert allocator.allocate(64).tokens == {1: 5, 2: 9}


def test_what_does_not_fit_is_refused_with_the_largest_free_range():
    allocator = Allocator(128)
    allocator.allocate(96)
    with pytest.raises(OutOfOnChipMemory, match="32 of 128 are free"):
        allocator.allocate(64)


def test_later_tokens_win_and_dma_tokens_count_down():
    assert latest({1: 5, 9: -3}, {1: 4, 9: -8, 2: 1}) == {1: 5, 9: -8, 2: 1}


@given(st.lists(st.tuples(st.integers(1, 400), st.booleans()), max_size=120))
def test_blocks_in_use_never_overlap_and_nothing_is_lost(requests):
    allocator = Allocator(2048)
    held = []
    for size, release in requests:
        try:
            held.append(allocator.allocate(size))
        except OutOfOnChipMemory:
            assert allocator.largest() < size + 32
        if release and held:
            allocator.release(held.pop(0), {0: 1})
        ranges = sorted((block.address, block.address + block.size) for block in held)
        assert all(end <= start for (_, end), (start, _) in pairwise(ranges))
        assert allocator.free_bytes + sum(block.size for block in held) == 2048
