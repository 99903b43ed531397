"""Collectives: how long an operation of several ranks moves, by algorithm, in a latency and bandwidth model.

With N ranks, a buffer of B bytes a rank and a bus bandwidth W (`Links.bus_bandwidth`):

    ring       N - 1 steps, (N - 1)/N x B / W; an all-reduce does it twice (reduce-scatter, all-gather)
    kangaring  a ring in which pairs of one chip act as one: half the steps, the same bytes
    mesh       one step, the same bytes at the share of W that over-subscribed links leave
    doubling   log2 N steps, the same bytes at a larger share of W
    hierarchy  over nodes: within each node, then between nodes for each local rank side by side

Source: aws-neuron-sdk@3afa0fdf neuron-runtime/explore/{intranode,internode}-collective-comm.rst. The
quickest is taken, as the runtime chooses by size. Contention with other traffic is not part of the model.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from neuron_tools.frozen import frozen
from neuron_tools.hardware import Device, Links, NeuronCore, device_of, links
from neuron_tools.records.program import Collective, CollectiveKind, Program
from neuron_tools.simulator.errors import ProgramError
from neuron_tools.simulator.work import Meetings

ALGORITHMS = ("ring", "kangaring", "mesh", "rdh", "hier")
"""Names as nccom-test prints them: ring, ring of pairs, mesh, recursive doubling and halving, hierarchy."""

_TWICE = (CollectiveKind.ALL_REDUCE,)
_ONE_STEP = (CollectiveKind.PERMUTE,)
_TOUCHES = {CollectiveKind.ALL_REDUCE: 2.5, CollectiveKind.REDUCE_SCATTER: 3.0}
"""Reads and writes of a rank's HBM for each byte that it passes on: 2 to gather, 3 to add up."""


@frozen
class CollectiveCost:
    """How long a collective moves once its last rank has come.

    Attributes:
        algorithm: One of ALGORITHMS, "local" for one rank.
        steps: Steps that follow one another.
        latency_ns: Start and hops.
        transfer_ns: Bytes at the bandwidth reached.
        byte_count: Of the larger of a rank's input and output.
        bus_factor: Bus bandwidth by algorithm bandwidth, as nccom-test defines it.
    """

    algorithm: str
    steps: int
    latency_ns: float
    transfer_ns: float
    byte_count: int
    bus_factor: float

    @property
    def duration_ns(self) -> float:
        """Latency and transfer."""
        return self.latency_ns + self.transfer_ns

    @property
    def algorithm_bandwidth(self) -> float:
        """Bytes of the buffer per second."""
        return self.byte_count / (self.duration_ns * 1e-9) if self.duration_ns else 0.0

    @property
    def bus_bandwidth(self) -> float:
        """Bytes per second that each rank passes on."""
        return self.algorithm_bandwidth * self.bus_factor


def cost(
    kind: CollectiveKind,
    byte_count: int,
    group: Sequence[int],
    hardware: Device | Links,
    algorithm: str | None = None,
) -> CollectiveCost:
    """What a collective costs.

    Args:
        kind: What is done.
        byte_count: Bytes of the larger of a rank's input and output: the buffer of an all-reduce, the output
            of an all-gather, the input of a reduce-scatter.
        group: Ranks, as numbers of logical cores over the whole cluster.
        hardware: The machine, or its links.
        algorithm: One of ALGORITHMS; the quickest if None.

    Raises:
        ProgramError: An algorithm that the group cannot use.
    """
    net = links(hardware) if isinstance(hardware, Device) else hardware
    ranks = tuple(dict.fromkeys(group))
    if kind == CollectiveKind.BARRIER:
        byte_count = 0
    if len(ranks) < 2:
        return CollectiveCost("local", 0, 0.0, 0.0, byte_count, 0.0)
    choices = _usable(kind, ranks, net)
    if algorithm is not None:
        if algorithm not in choices:
            raise ProgramError(
                f"{kind.name.lower()} over {len(ranks)} ranks cannot use {algorithm!r}; it can use: "
                f"{', '.join(choices)}."
            )
        choices = (algorithm,)
    costs = [_cost(kind, byte_count, ranks, net, choice) for choice in choices]
    return min(costs, key=lambda cost: cost.duration_ns)


def duration(kind: CollectiveKind, byte_count: int, group: Sequence[int], hardware: Device | Links) -> float:
    """Nanoseconds that a collective moves by the quickest algorithm; see `cost`."""
    return cost(kind, byte_count, group, hardware).duration_ns


def traffic(item: Collective) -> tuple[float, float]:
    """Bytes that one rank's DMA engines move in a collective, and that are read and written in its HBM.

    Each byte that is passed on is read and written once, and once more read where it is added to another.
    Source: "HBM touches" of a ring, aws-neuron-sdk neuron-runtime/explore/intranode-collective-comm.rst.
    """
    ranks = len(set(item.group))
    if ranks < 2 or item.kind == CollectiveKind.BARRIER:
        return 0.0, 0.0
    moved = item.byte_count * bus_factor(item.kind, ranks)
    return moved, moved * _TOUCHES.get(item.kind, 2.0)


def bus_factor(kind: CollectiveKind, ranks: int) -> float:
    """Bus bandwidth by algorithm bandwidth (nccom-test): 2(r-1)/r, (r-1)/r, or 1."""
    if kind in (CollectiveKind.PERMUTE, CollectiveKind.BROADCAST):
        return 1.0
    once = (ranks - 1) / ranks
    return 2.0 * once if kind in _TWICE else once


def lone_meetings(program: Program, core: NeuronCore) -> Meetings:
    """Collectives of one rank's Program, all other ranks ready at once."""
    parts = []
    items: list[Collective] = []
    for each in program.of_cores:
        part = each.dmas["collective"].astype(np.int32)
        parts.append(np.where(part >= 0, part + len(items), part).astype(np.int32))
        items += each.collectives
    net = links(device_of(core)) if items else None
    durations = [_picoseconds(item, net) for item in items] if net is not None else []
    return Meetings(parts, [1] * len(items), durations, list(map(traffic, items)))


def meetings(programs: Sequence[Program], ranks: Sequence[int], net: Links) -> Meetings:
    """Which collectives of several ranks' Programs meet.

    The n-th of a rank on a group meets the n-th of the others; ranks that are not simulated count as ready.

    Raises:
        ProgramError: Two ranks bring different operations or sizes to one meeting, or a rank is not in the
            group of its own collective.
    """
    numbers: dict[tuple[tuple[int, ...], int], int] = {}
    first: list[tuple[Collective, int]] = []
    joined: Counter[int] = Counter()
    parts = []
    for program, rank in zip(programs, ranks, strict=True):
        counts: dict[tuple[int, ...], int] = {}
        own = np.full(len(program.collectives) + 1, -1, np.int32)
        for item in _in_order(program):
            own[item] = _meet(program, rank, program.collectives[item], counts, numbers, first)
            joined[own[item]] += 1
        parts.append(own[program.dmas["collective"]])
    expected = [len(set(item.group) & set(ranks)) for item, _ in first]
    members = [max(count, joined[number]) for number, count in enumerate(expected)]
    durations = [_picoseconds(item, net) for item, _ in first]
    return Meetings(parts, members, durations, [traffic(item) for item, _ in first])


def _in_order(program: Program) -> list[int]:
    """Rows of the collectives in the order in which the DMA table triggers them."""
    dma = program.instructions["dma"]
    items = program.dmas["collective"][dma[dma >= 0]]
    return [int(item) for item in items if item >= 0]


def _meet(
    program: Program,
    rank: int,
    item: Collective,
    counts: dict[tuple[int, ...], int],
    numbers: dict[tuple[tuple[int, ...], int], int],
    first: list[tuple[Collective, int]],
) -> int:
    group = tuple(sorted(set(item.group)))
    if rank not in group:
        raise ProgramError(
            f"Program {program.name!r}: rank {rank} takes part in {item.kind.name.lower()} {item.name!r} of "
            f"ranks {list(group)}, to which it does not belong."
        )
    turn = counts.get(group, 0)
    counts[group] = turn + 1
    number = numbers.setdefault((group, turn), len(numbers))
    if number == len(first):
        first.append((item, rank))
    other, other_rank = first[number]
    if (other.kind, other.byte_count) != (item.kind, item.byte_count):
        raise ProgramError(
            f"Collective {turn} of ranks {list(group)} does not match: rank {other_rank} brings "
            f"{other.kind.name.lower()} of {other.byte_count} bytes, rank {rank} {item.kind.name.lower()} of "
            f"{item.byte_count}."
        )
    return number


def _usable(kind: CollectiveKind, ranks: tuple[int, ...], net: Links) -> tuple[str, ...]:
    nodes = _by_node(ranks, net)
    if kind in _ONE_STEP:
        return ("mesh",)
    names = ["ring", "mesh"]
    if len(nodes) > 1:
        sizes = {len(members) for members in nodes.values()}
        several = len(sizes) == 1 and sizes != {1} and kind != CollectiveKind.BARRIER
        return (*names, "hier") if several else tuple(names)
    chips = {net.place(rank).chip for rank in ranks}
    if len(chips) > 1 and len(ranks) % (2 * len(chips)) == 0:
        names.append("kangaring")
    if len(ranks) > 2 and len(ranks) & (len(ranks) - 1) == 0:
        names.append("rdh")
    return tuple(names)


def _cost(
    kind: CollectiveKind, byte_count: int, ranks: tuple[int, ...], net: Links, algorithm: str
) -> CollectiveCost:
    if algorithm == "hier":
        return _hierarchical(kind, byte_count, ranks, net)
    count, factor = len(ranks), bus_factor(kind, len(ranks))
    rounds = 2 if kind in _TWICE else 1
    steps = rounds * _steps(algorithm, count)
    if kind in _ONE_STEP:
        steps = 1
    share = {"mesh": net.mesh_efficiency, "rdh": net.doubling_efficiency}.get(algorithm, 1.0)
    if kind in _ONE_STEP or count == 2:
        share = 1.0
    moved = byte_count * factor
    return CollectiveCost(
        algorithm=algorithm,
        steps=steps,
        latency_ns=net.start_ns + steps * net.hop_ns(ranks),
        transfer_ns=moved / (net.bus_bandwidth(ranks) * share) * 1e9,
        byte_count=byte_count,
        bus_factor=factor,
    )


def _steps(algorithm: str, count: int) -> int:
    if algorithm == "mesh":
        return 1
    if algorithm == "rdh":
        return math.ceil(math.log2(count))
    return (count - 1) if algorithm == "ring" else max(count // 2 - 1, 1)


def _hierarchical(
    kind: CollectiveKind, byte_count: int, ranks: tuple[int, ...], net: Links
) -> CollectiveCost:
    """Stages within nodes and between nodes; the local ranks share the network of their node."""
    nodes = _by_node(ranks, net)
    local = next(iter(nodes.values()))
    across = tuple(members[0] for members in nodes.values())
    shared = net.replace(node_bandwidth=net.node_bandwidth / len(local))
    part = byte_count // len(local)
    stages = []
    if kind == CollectiveKind.ALL_REDUCE:
        stages.append(cost(CollectiveKind.REDUCE_SCATTER, byte_count, local, net))
        stages.append(cost(CollectiveKind.ALL_REDUCE, part, across, shared))
        stages.append(cost(CollectiveKind.ALL_GATHER, byte_count, local, net))
    else:
        stages.append(cost(kind, part, across, shared))
        stages.append(cost(kind, byte_count, local, net))
    return CollectiveCost(
        algorithm="hier",
        steps=sum(stage.steps for stage in stages),
        latency_ns=sum(stage.latency_ns for stage in stages),
        transfer_ns=sum(stage.transfer_ns for stage in stages),
        byte_count=byte_count,
        bus_factor=bus_factor(kind, len(ranks)),
    )


def _by_node(ranks: tuple[int, ...], net: Links) -> dict[int, tuple[int, ...]]:
    nodes: dict[int, tuple[int, ...]] = {}
    for rank in ranks:
        node = net.place(rank).node
        nodes[node] = (*nodes.get(node, ()), rank)
    return nodes


def _picoseconds(item: Collective, net: Links) -> int:
    return max(round(duration(item.kind, item.byte_count, item.group, net) * 1000.0), 1)
