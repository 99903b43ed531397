"""When collectives run: on the simulated links, from the moment the last rank is ready.

All times here are of the job: nanoseconds that every rank counts from the same moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from neuron_tools.device.distributed.header import NOT_TIMED, Header
from neuron_tools.frozen import frozen
from neuron_tools.hardware import Links
from neuron_tools.records.program import CollectiveKind
from neuron_tools.simulator.collectives import CollectiveCost, cost


@frozen
class Placement:
    """When one collective ran.

    Attributes:
        start_ns: It begins to move.
        end_ns: Its values are there.
        cost: By which algorithm, and how long.
        last: Place in the group of the rank that was ready last.
    """

    start_ns: int
    end_ns: int
    cost: CollectiveCost
    last: int


@lru_cache(maxsize=4096)
def collective_cost(
    kind: CollectiveKind, byte_count: int, cores: tuple[int, ...], links: Links
) -> CollectiveCost:
    """`simulator.collectives.cost`, once for each kind and size."""
    return cost(kind, byte_count, cores, links)


class LinkClock:
    """Until when this rank's links are taken, as far as the rank knows when it issues.

    Collectives of one group queue behind each other by themselves. Those of several groups share the links:
    the bytes of a later one move when those of the earlier ones have moved, so that no link carries more
    than it can. Each rank knows of its own only, and tells the others.
    """

    def __init__(self) -> None:
        self._free_ns: dict[str, int] = {}
        self._session = 0

    def begin(self, session: int) -> None:
        """Begin anew unless this session began already."""
        if session != self._session:
            self._session = session
            self.clear()

    def reserve(self, level: str, ready_ns: int, transfer_ns: float) -> int:
        """Take the links for one more transfer.

        Args:
            level: Which links: "core", "chip" or "node".
            ready_ns: When this rank is ready for it.
            transfer_ns: How long its bytes move.

        Returns:
            Until when they were taken before.
        """
        before = self._free_ns.get(level, 0)
        self._free_ns[level] = max(before, ready_ns) + round(transfer_ns)
        return before

    def extend(self, level: str, end_ns: int) -> None:
        """A transfer was seen to end at a time."""
        self._free_ns[level] = max(self._free_ns.get(level, 0), end_ns)

    def clear(self) -> None:
        """Begin a new session."""
        self._free_ns.clear()


def level_of(cores: Sequence[int], links: Links) -> str:
    """The farthest links that a group uses."""
    places = [links.place(core) for core in cores]
    if len({place.node for place in places}) > 1:
        return "node"
    return "chip" if len({place.chip for place in places}) > 1 else "core"


def place(headers: Sequence[Header], spent: CollectiveCost, not_before_ns: int) -> Placement | None:
    """When a collective runs; the same on every rank.

    Args:
        headers: What its ranks told.
        spent: What it costs.
        not_before_ns: End of the group's collective before it.

    Returns:
        None where no rank keeps virtual time.
    """
    timed = [each for each in headers if each.ready_ns != NOT_TIMED]
    if not timed:
        return None
    last = max(timed, key=lambda each: each.ready_ns)
    free_ns = max(each.link_free_ns for each in timed)
    start_ns = max(last.ready_ns, not_before_ns, free_ns - round(spent.latency_ns))
    return Placement(start_ns, start_ns + max(round(spent.duration_ns), 1), spent, last.source)
