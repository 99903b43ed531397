"""What the ranks of a job add up to: who is slow, what they spend their time on, what collectives cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.ranks.partial import CollectiveCalls, RankKey, RankPartial

Ints = npt.NDArray[np.int64]
STRAGGLER = 1.05  # times the median of the ranks


@dataclass(frozen=True, slots=True)
class RankTime:
    """One rank.

    Attributes:
        idle_ns: Its window without its executions.
        waited_ns: In collectives for ranks that joined later.
        waited_for_ns: What the other ranks waited because this one joined last.
        straggler: Its time without waiting is over `STRAGGLER` times the median.
    """

    rank: int
    host: str
    device_ns: int
    idle_ns: int
    waited_ns: int
    waited_for_ns: int
    peak_hbm_bytes: int
    straggler: bool


@dataclass(frozen=True, slots=True)
class EngineSpread:
    """Busy time of one engine over the ranks."""

    engine: str
    mean_ns: float
    least_ns: int
    most_ns: int


@dataclass(frozen=True, slots=True)
class OperationSpread:
    """One operation over the ranks that have it."""

    operation: str
    total_ns: float
    calls: int
    ranks: int
    least_ns: float
    most_ns: float
    most_rank: int


@dataclass(frozen=True, slots=True)
class CollectiveCost:
    """Calls of one operation and size, over all groups.

    Attributes:
        transfer_ns: Of one rank, over all calls: what the rank that joined last took.
        waited_ns: Mean over the ranks: the rest of their time, for which they waited for the last.
    """

    operation: str
    input_bytes: int
    calls: int
    ranks: int
    transfer_ns: int
    waited_ns: float


@dataclass(frozen=True, slots=True)
class Bystander:
    """A process that used no device; it is not compared with the ranks.

    Attributes:
        role: "launcher", or "rank 3" where the profile gives it a rank.
    """

    role: str
    host: str
    command: str
    path: str


@dataclass(frozen=True, slots=True)
class Job:
    """All ranks together; operations and collectives by falling time."""

    ranks: tuple[RankTime, ...]
    without_device_work: tuple[Bystander, ...]
    engines: tuple[EngineSpread, ...]
    operations: tuple[OperationSpread, ...]
    collectives: tuple[CollectiveCost, ...]

    @property
    def stragglers(self) -> tuple[int, ...]:
        """Ranks that are slower than the others."""
        return tuple(row.rank for row in self.ranks if row.straggler)


def reduce_ranks(partials: Iterable[RankPartial]) -> Job:
    """Put the ranks together. Memory grows with the partial results, not with the profiles."""
    every = sorted(partials, key=lambda partial: partial.key.order)
    ordered = [partial for partial in every if partial.used_device]
    numbers = _numbers([partial.key for partial in ordered])
    waits = _Waits(len(ordered))
    costs = waits.add_all(ordered)
    own = [partial.device_ns - waits.waited[place] for place, partial in enumerate(ordered)]
    median = float(np.median(own)) if own else 0.0
    rows = tuple(
        RankTime(
            rank, partial.key.host, partial.device_ns, partial.window_ns - partial.device_ns,
            int(waits.waited[place]), int(waits.waited_for[place]), partial.peak_hbm_bytes,
            bool(own[place] > STRAGGLER * median),
        )
        for place, (rank, partial) in enumerate(zip(numbers, ordered))
    )  # fmt: skip
    bystanders = tuple(_bystander(partial.key) for partial in every if not partial.used_device)
    return Job(rows, bystanders, _engines(ordered), _operations(ordered, numbers), costs)


def _numbers(keys: Sequence[RankKey]) -> list[int]:
    """The ranks' numbers: those of the profiles; ranks without one come after all that have one."""
    free = count(max((key.rank + 1 for key in keys if key.rank is not None), default=0))
    return [next(free) if key.rank is None else key.rank for key in keys]


def _bystander(key: RankKey) -> Bystander:
    role = "launcher" if key.rank is None else f"rank {key.rank}"
    return Bystander(role, key.host, key.command, key.path)


class _Waits:
    """Time in collectives, apart: transfer and waiting for the last rank."""

    def __init__(self, ranks: int) -> None:
        self.waited = np.zeros(ranks, np.int64)
        self.waited_for = np.zeros(ranks, np.int64)

    def add_all(self, partials: Sequence[RankPartial]) -> tuple[CollectiveCost, ...]:
        """The cost of each operation and size; adds to the ranks' waits."""
        groups: defaultdict[str, list[tuple[int, CollectiveCalls]]] = defaultdict(list)
        for place, partial in enumerate(partials):
            for members, calls in partial.collectives.items():
                groups[members].append((place, calls))
        totals: defaultdict[tuple[str, int], list[float]] = defaultdict(lambda: [0, 0, 0, 0.0])
        for parts in groups.values():
            self._add_group(parts, totals)
        costs = [
            CollectiveCost(operation, size, int(row[0]), int(row[1]), int(row[2]), row[3])
            for (operation, size), row in totals.items()
        ]
        return tuple(sorted(costs, key=lambda cost: (-cost.transfer_ns - cost.waited_ns, cost.operation)))

    def _add_group(
        self, parts: Sequence[tuple[int, CollectiveCalls]], totals: dict[tuple[str, int], list[float]]
    ) -> None:
        """The n-th call of a rank on a group meets the n-th of the others."""
        places = np.array([place for place, _ in parts])
        calls = min(len(each.taken_ns) for _, each in parts)
        taken = np.stack([each.taken_ns[:calls] for _, each in parts])
        transfer = taken.min(axis=0) if calls else np.zeros(0, np.int64)
        waited = taken - transfer
        self.waited[places] += waited.sum(axis=1)
        if len(parts) > 1 and calls:
            np.add.at(self.waited_for, places[taken.argmin(axis=0)], waited.sum(axis=0))
        first = parts[0][1]
        for call in range(calls):
            row = totals[first.operation[call], int(first.input_bytes[call])]
            row[0] += 1
            row[1] = max(row[1], len(parts))
            row[2] += int(transfer[call])
            row[3] += float(waited[:, call].mean())


def _engines(partials: Sequence[RankPartial]) -> tuple[EngineSpread, ...]:
    names = sorted({name for partial in partials for name in partial.engines_ns})
    found = []
    for name in names:
        times = [partial.engines_ns.get(name, 0) for partial in partials]
        found.append(EngineSpread(name, float(np.mean(times)), min(times), max(times)))
    return tuple(found)


def _operations(partials: Sequence[RankPartial], numbers: Sequence[int]) -> tuple[OperationSpread, ...]:
    times: defaultdict[str, list[tuple[float, int, int]]] = defaultdict(list)
    for rank, partial in zip(numbers, partials):
        for name, (time_ns, calls) in partial.operations.items():
            times[name].append((time_ns, calls, rank))
    rows = [
        OperationSpread(
            name, sum(time for time, _, _ in found), sum(calls for _, calls, _ in found), len(found),
            min(found)[0], max(found)[0], max(found)[2],
        )
        for name, found in times.items()
    ]  # fmt: skip
    return tuple(sorted(rows, key=lambda row: (-row.total_ns, row.operation)))
