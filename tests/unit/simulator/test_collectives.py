"""The cost of collectives: published timings, limits of the links, choice of algorithm."""

import pytest
from hypothesis import given, strategies as st

from neuron_tools import hardware
from neuron_tools.records.program import CollectiveKind
from neuron_tools.simulator import ProgramError
from neuron_tools.simulator.collectives import bus_factor, cost, duration

ALL_REDUCE, ALL_GATHER = CollectiveKind.ALL_REDUCE, CollectiveKind.ALL_GATHER
MIB = 1 << 20


# pantheonneuron data/probe-2026-08-26-tools/04-collectives-nccom-test.txt: two cores of one trn1 chip.
@pytest.mark.parametrize(("byte_count", "microseconds"), [(1048576, 23.5), (4718591, 91.5), (8388606, 160.0)])
def test_all_reduce_of_two_cores_is_within_2_percent_of_the_measured(byte_count, microseconds):
    device = hardware.device("trn1.2xlarge")
    assert duration(ALL_REDUCE, byte_count, (0, 1), device) / 1000 == pytest.approx(microseconds, rel=0.02)


# aws-neuron-sdk nccom-test page: 32 ranks, all-gather, 1 KiB.
def test_a_small_all_gather_takes_microseconds():
    assert duration(ALL_GATHER, 1024, range(32), hardware.device("trn2.48xlarge")) == pytest.approx(
        6190, rel=0.4
    )


@pytest.mark.parametrize("ranks", [2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("kind", [ALL_REDUCE, ALL_GATHER, CollectiveKind.REDUCE_SCATTER])
def test_a_large_collective_comes_within_10_percent_of_the_links_and_never_above(ranks, kind):
    device = hardware.device("trn2.48xlarge")
    limit = hardware.links(device).bus_bandwidth(range(ranks))
    reached = cost(kind, 1 << 30, range(ranks), device).bus_bandwidth
    assert 0.9 * limit <= reached <= limit


@given(
    st.sampled_from(["inf2.48xlarge", "trn1.32xlarge", "trn2.48xlarge", "trn3-ultraserver-gen1"]),
    st.sampled_from(list(CollectiveKind)),
    st.integers(0, 1 << 32),
    st.sets(st.integers(0, 255), min_size=2, max_size=40),
)
def test_no_collective_beats_the_links_or_the_hops(instance, kind, byte_count, group):
    device = hardware.device(instance)
    net = hardware.links(device)
    ranks = tuple(group)
    result = cost(kind, byte_count, ranks, device)
    assert result.bus_bandwidth <= net.bus_bandwidth(ranks) * (1 + 1e-9)
    assert result.duration_ns >= net.start_ns + net.hop_ns(ranks)


@given(st.integers(2, 64), st.integers(0, 1 << 30), st.integers(1, 1 << 20))
def test_more_bytes_take_no_less_time(ranks, byte_count, more):
    device = hardware.device("trn2.48xlarge")
    assert duration(ALL_REDUCE, byte_count, range(ranks), device) <= duration(
        ALL_REDUCE, byte_count + more, range(ranks), device
    )


def test_small_messages_go_by_mesh_middle_ones_by_doubling_and_large_ones_by_ring():
    # aws-neuron-sdk intranode-collective-comm.rst: mesh below 1 MB, doubling 1 to 56 MB, kangaring above.
    device, group = hardware.device("trn2.48xlarge"), range(64)
    chosen = [cost(ALL_REDUCE, size, group, device).algorithm for size in (4096, 4 * MIB, 256 * MIB)]
    assert chosen == ["mesh", "rdh", "kangaring"]


def test_nodes_are_crossed_once_by_a_hierarchy():
    device = hardware.device("trn2.48xlarge")
    large = cost(ALL_REDUCE, 64 * MIB, range(128), device)
    assert large.algorithm == "hier"
    assert large.duration_ns < cost(ALL_REDUCE, 64 * MIB, range(128), device, "ring").duration_ns
    assert cost(ALL_REDUCE, 4, (0, 64), device).latency_ns >= 15_000


def test_one_rank_moves_nothing():
    assert cost(ALL_REDUCE, MIB, (3,), hardware.device("trn1")).duration_ns == 0
    assert duration(CollectiveKind.BARRIER, 0, range(8), hardware.device("trn1")) > 0


def test_an_algorithm_that_does_not_fit_is_refused():
    with pytest.raises(ProgramError, match="cannot use 'rdh'"):
        cost(ALL_REDUCE, MIB, range(3), hardware.device("trn2.48xlarge"), "rdh")


def test_bus_factors_are_those_of_nccom_test():
    assert bus_factor(ALL_REDUCE, 4) == 1.5
    assert bus_factor(ALL_GATHER, 4) == 0.75
    assert bus_factor(CollectiveKind.PERMUTE, 4) == 1.0


def test_faster_links_help_only_what_they_bound():
    net = hardware.links(hardware.device("trn2.48xlarge"))
    slow = net.replace(chip_bandwidth=net.core_bandwidth / 4)
    assert duration(ALL_REDUCE, 64 * MIB, range(16), slow) > duration(ALL_REDUCE, 64 * MIB, range(16), net)
    assert duration(ALL_REDUCE, 64 * MIB, range(4), slow) == duration(ALL_REDUCE, 64 * MIB, range(4), net)
