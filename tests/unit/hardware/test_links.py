"""Links and places of cores."""

import pytest

from neuron_tools import hardware


def test_ranks_fill_chips_and_then_nodes():
    net = hardware.links(hardware.device("trn2.48xlarge"))
    assert (net.cores_per_chip, net.chips_per_node) == (4, 16)
    assert net.place(0) == hardware.Place(0, 0, 0)
    assert net.place(7) == hardware.Place(7, 1, 0)
    assert net.place(64) == hardware.Place(64, 16, 1)


def test_logical_cores_follow_the_lnc():
    assert hardware.links(hardware.device("trn2", lnc=1)).cores_per_chip == 8
    assert hardware.links(hardware.device("trn2", lnc=2)).cores_per_chip == 4


def test_hops_of_a_torus_go_around():
    net = hardware.links(hardware.device("trn1.32xlarge"))
    assert [net.hops(0, chip) for chip in (0, 1, 3, 4, 5, 10, 12, 15)] == [0, 1, 1, 1, 2, 4, 1, 2]


def test_hops_of_a_ring_and_a_switch():
    ring = hardware.links(hardware.device("inf2.48xlarge"))
    assert [ring.hops(0, chip) for chip in (1, 6, 11)] == [1, 6, 1]
    switch = hardware.links(hardware.device("trn3-ultraserver-gen1"))
    assert switch.hops(0, 63) == 1


def test_a_hop_takes_longer_the_farther_it_goes():
    net = hardware.links(hardware.device("trn2.48xlarge"))
    assert net.hop_ns((0, 1)) < net.hop_ns((0, 4)) < net.hop_ns((0, 64)) == 15_000


def test_an_unknown_figure_is_refused():
    with pytest.raises(hardware.UnknownFigureError, match="warp"):
        hardware.links(hardware.device("trn1")).replace(warp=1)


@pytest.mark.parametrize("instance", list(hardware.instances()))
def test_every_instance_has_links(instance):
    net = hardware.links(hardware.device(instance))
    assert net.core_bandwidth > 0
    assert (net.chip_bandwidth > 0) == (net.chips_per_node > 1)
