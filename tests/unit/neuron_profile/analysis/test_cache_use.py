"""Blocks of the KV cache over time, and as `analyze requests` tells them."""

from __future__ import annotations

import neuron_tools
from neuron_profile.analysis.analyses import run_analysis
from neuron_profile.analysis.cache_use import WINDOWS, CacheUse, HeldBlocks, find_held_blocks
from tests.unit.neuron_profile.serving_tables import BATCHED, CACHE_USE, host_spans


def test_each_process_holds_its_own_blocks(make_profile) -> None:
    rows = (*CACHE_USE, ("kv_cache 1/8", "range", 200, 300, 1))
    with neuron_tools.open_profile(make_profile(tables=host_spans(*rows))) as profile:
        assert find_held_blocks(profile) == (
            HeldBlocks(0, 64, (140, 310, 715), 720, (2, 5, 3)),
            HeldBlocks(1, 8, (200,), 300, (1,)),
        )


def test_a_window_has_the_most_blocks_of_it() -> None:
    held = HeldBlocks(0, 64, (0, 30, 35), 100, (2, 16, 4))
    assert [use.used_blocks for use in held.in_windows(5)] == [2, 16, 4, 4, 4]
    assert held.in_windows(5)[1] == CacheUse(0, 20, 16, 64, 0.25)
    assert max(use.used_blocks for use in held.in_windows(1000)) == held.most == 16


def test_blocks_that_are_held_for_no_time_are_in_a_window() -> None:
    assert max(use.used_blocks for use in HeldBlocks(0, 8, (7, 7), 7, (3, 1)).in_windows(2)) == 3


def test_analyze_requests_has_the_cache_in_windows(make_profile) -> None:
    with neuron_tools.open_profile(make_profile(tables=host_spans(*BATCHED, *CACHE_USE))) as profile:
        result = run_analysis(profile, "requests")
    assert len(result.kv_cache) == WINDOWS
    assert max(use.used_blocks for use in result.kv_cache) == 5
    assert result.kv_cache[0] == CacheUse(0, 140, 2, 64, 2 / 64)


def test_other_ranges_are_none(make_profile) -> None:
    names = ("kv_cache 1", "kv_cache a/b", "kv_cache 1/2 of all", "kv_cache -1/2")
    rows = host_spans(*((name, "range", 0, 9) for name in names))
    with neuron_tools.open_profile(make_profile(tables=rows)) as profile:
        assert find_held_blocks(profile) == ()
