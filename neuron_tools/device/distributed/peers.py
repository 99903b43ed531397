"""Which machine, process and NeuronCore each rank of the job is."""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from neuron_tools.device.driver.cores import VISIBLE_VARIABLE, parse_cores
from neuron_tools.frozen import frozen
from neuron_tools.hardware import Links

# Field 9 of /proc/PID/stat, counted behind the name (man 5 proc_pid_stat), and its bit PF_EXITING, which the
# kernel sets before it closes a process's files (linux, include/linux/sched.h and kernel/exit.c).
_FLAGS = 6
_EXITING = 0x4
_DTYPE = np.dtype([("rank", "<i8"), ("process_id", "<i8"), ("core", "<i8"), ("host", "S64"), ("boot", "S40")])


@frozen
class Peer:
    """One rank.

    Attributes:
        rank: In the whole job.
        core: NeuronCore of its machine that it uses.
        host: Its machine's name.
        boot: Tells machines of one name apart.
    """

    rank: int
    process_id: int
    core: int
    host: str
    boot: str

    def pack(self) -> torch.Tensor:
        """As a tensor of bytes."""
        row = np.zeros(1, _DTYPE)
        row[0] = (self.rank, self.process_id, self.core, self.host.encode()[:64], self.boot.encode()[:40])
        return torch.from_numpy(row.view(np.uint8))

    def is_gone(self) -> bool:
        """Whether its process is known to have ended, or to be ending: it ran on this machine."""
        if self.boot != _boot():
            return False
        try:
            os.kill(self.process_id, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return is_ending(_status(self.process_id))


PEER_BYTES = _DTYPE.itemsize


def this_rank(rank: int) -> Peer:
    """This process as a peer."""
    return Peer(rank, os.getpid(), own_core(), socket.gethostname(), _boot())


def unpack(packed: torch.Tensor) -> Peer:
    """The peer in a tensor of PEER_BYTES bytes."""
    row = packed.numpy().view(_DTYPE)[0]
    texts = (bytes(row[name]).decode("utf-8", "replace") for name in ("host", "boot"))
    return Peer(int(row["rank"]), int(row["process_id"]), int(row["core"]), *texts)


def own_core(environment: Mapping[str, str] = os.environ) -> int:
    """NeuronCore of the machine that this process's current device is.

    A process that was given cores uses those; ranks that see the cores of all use the one of their number.
    """
    from neuron_tools.device import native

    index = int(native.core().current_device())
    visible = parse_cores(environment.get(VISIBLE_VARIABLE, ""))
    if index < len(visible):
        return visible[index]
    local_rank = environment.get("LOCAL_RANK", "")
    alone = int(native.core().device_count()) == 1
    return int(local_rank) if alone and local_rank.isdecimal() else index


def cluster_cores(peers: Mapping[int, Peer], links: Links) -> dict[int, int]:
    """Logical core of each rank, numbered over the whole cluster as `Links.place` counts.

    Ranks that would share a core (more processes than the machine has) stand one after the other instead.
    """
    per_node = links.cores_per_chip * links.chips_per_node
    ordered = sorted(peers)
    nodes = {boot: number for number, boot in enumerate(dict.fromkeys(peers[rank].boot for rank in ordered))}
    cores = {rank: nodes[peers[rank].boot] * per_node + peers[rank].core for rank in ordered}
    fits = all(peers[rank].core < per_node for rank in ordered)
    return cores if fits and len(set(cores.values())) == len(cores) else {rank: rank for rank in ordered}


def shared_links(links: Links, group: Sequence[int], job: Sequence[int]) -> Links:
    """The links as one group has them: chips and nodes are shared with the job's other ranks there.

    Groups of one mesh dimension run side by side (one all-reduce for each local rank), so that each gets
    its members' share of what leaves the chip and the node.

    Args:
        group: Cores of the group.
        job: Cores of all ranks.
    """
    chip = _least_share([links.place(core).chip for core in group], [links.place(core).chip for core in job])
    node = _least_share([links.place(core).node for core in group], [links.place(core).node for core in job])
    if chip == node == 1.0:
        return links
    return replace(
        links, chip_bandwidth=links.chip_bandwidth * chip, node_bandwidth=links.node_bandwidth * node
    )


def _least_share(own: Sequence[int], everybody: Sequence[int]) -> float:
    members, residents = Counter(own), Counter(everybody)
    return min(count / max(residents[place], count) for place, count in members.items())


def _boot() -> str:
    """Differs from machine to machine and between containers that cannot see each other's processes."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{namespace[5:-1]}{file.read().strip()}"[:40]
    except OSError:
        return socket.gethostname()[:40]


def is_ending(status: str) -> bool:
    """Whether a process has ended, or is about to, which it is before its connections close.

    Args:
        status: The text of `/proc/PID/stat`; "" where that cannot be read.
    """
    fields = status.rpartition(")")[2].split()
    if len(fields) <= _FLAGS:
        return False
    return fields[0] in "ZX" or bool(int(fields[_FLAGS]) & _EXITING)


def _status(process_id: int) -> str:
    try:
        with open(f"/proc/{process_id}/stat", encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
