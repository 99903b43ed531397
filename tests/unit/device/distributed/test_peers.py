"""Where ranks run, and how groups share what leaves a chip."""

import os
import subprocess
import sys

import pytest

from neuron_tools import hardware
from neuron_tools.device.distributed import peers
from neuron_tools.device.distributed.peers import Peer

LINKS = hardware.links(hardware.device("trn2.48xlarge", lnc=1))


def test_a_peer_survives_the_way():
    peer = Peer(3, 1234, 17, "host-a", "boot")
    assert peers.unpack(peer.pack()) == peer


def test_ranks_on_two_machines_get_cores_of_two_nodes():
    per_node = LINKS.cores_per_chip * LINKS.chips_per_node
    known = {0: Peer(0, 1, 5, "a", "one"), 1: Peer(1, 1, 5, "b", "two")}
    assert peers.cluster_cores(known, LINKS) == {0: 5, 1: per_node + 5}


def test_more_ranks_than_cores_stand_one_after_the_other():
    known = {rank: Peer(rank, 1, 0, "a", "one") for rank in range(3)}
    assert peers.cluster_cores(known, LINKS) == {0: 0, 1: 1, 2: 2}


def test_groups_side_by_side_share_what_leaves_their_chip():
    chip = LINKS.cores_per_chip
    job = range(2 * chip)
    whole = peers.shared_links(LINKS, list(job), list(job))
    one_of_many = peers.shared_links(LINKS, [0, chip], list(job))
    assert whole == LINKS
    assert one_of_many.chip_bandwidth * chip == LINKS.chip_bandwidth


@pytest.mark.parametrize(
    ("status", "ends"),
    [
        ("7 (a) Z) S 1 7 7 0 -1 4194304 99 0", False),
        ("7 (rank) Z 1 7 7 0 -1 4194304 99 0", True),
        ("7 (rank) R 1 7 7 0 -1 4194308 99 0", True),
        ("7 (rank) R 1", False),
        ("", False),
    ],
)
def test_a_process_that_closes_its_connections_is_ending(status, ends):
    assert peers.is_ending(status) is ends


def test_only_an_ended_process_is_gone():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    here = peers.this_rank(0).boot
    assert Peer(0, ended.pid, 0, "h", here).is_gone()
    assert not Peer(0, os.getpid(), 0, "h", here).is_gone()
    assert not Peer(0, ended.pid, 0, "h", "elsewhere").is_gone()
