"""How far the clocks of a job's machines are apart, measured when its first group meets."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from neuron_tools.device.distributed.peers import Peer
from neuron_tools.frozen import frozen

ROUNDS = 8
_TAG = (1 << 28) - 1  # below the tags of messages' headers, above those that programs use


@frozen
class HostOffset:
    """What to take off this machine's clock to get the first rank's.

    Attributes:
        uncertainty_ns: Bound on its error: half of the shortest round trip.
    """

    offset_ns: int = 0
    uncertainty_ns: int = 0


def measure_offset(
    gloo: Any, place: int, peers: Sequence[Peer], now_ns: Callable[[], int] = time.time_ns
) -> HostOffset:
    """Compare this machine's clock with that of the group's first rank; called by all ranks of the group.

    Each other machine's first rank sends to the first rank, which answers with its time; the round trip
    that took least tells most (as NTP does). Its neighbours are told what it found.

    Args:
        gloo: The group.
        place: Of this rank in it.
        peers: All ranks, in the order of the group.
        now_ns: This machine's clock.
    """
    machines = {peer.boot: first for first, peer in reversed(list(enumerate(peers)))}
    if len(machines) == 1:
        return HostOffset()
    asking = sorted(first for first in machines.values() if first != 0)
    found = torch.zeros(2, dtype=torch.int64, device="cpu")
    if place == 0:
        for other in asking:
            _answer(gloo, other, now_ns)
    elif place in asking:
        offset = _ask(gloo, now_ns)
        found = torch.tensor([offset.offset_ns, offset.uncertainty_ns], dtype=torch.int64, device="cpu")
    everybody = [torch.zeros(2, dtype=torch.int64, device="cpu") for _ in peers]
    gloo.allgather([everybody], [found]).wait()
    own = everybody[machines[peers[place].boot]]
    return HostOffset(int(own[0]), int(own[1]))


def _ask(gloo: Any, now_ns: Callable[[], int]) -> HostOffset:
    best = HostOffset(0, 1 << 62)
    for _ in range(ROUNDS):
        answer = torch.zeros(1, dtype=torch.int64, device="cpu")
        sent_ns = now_ns()
        gloo.send([answer.clone()], 0, _TAG).wait()
        gloo.recv([answer], 0, _TAG).wait()
        back_ns = now_ns()
        half_ns = (back_ns - sent_ns) // 2
        if half_ns < best.uncertainty_ns:
            best = HostOffset(sent_ns + half_ns - int(answer[0]), half_ns)
    return best


def _answer(gloo: Any, other: int, now_ns: Callable[[], int]) -> None:
    for _ in range(ROUNDS):
        asked = torch.zeros(1, dtype=torch.int64, device="cpu")
        gloo.recv([asked], other, _TAG).wait()
        gloo.send([torch.tensor([now_ns()], dtype=torch.int64, device="cpu")], other, _TAG).wait()
