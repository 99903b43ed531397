"""What the ranks of a job add up to: who is slow, what they spend their time on, what collectives cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count

import numpy as np

from neuron_profile.analysis.ranks.partial import RankKey, RankPartial
from neuron_profile.analysis.ranks.waits import CollectiveCost, Waits
from neuron_tools.frozen import frozen

STRAGGLER = 1.05  # times the median of the ranks


@frozen
class RankTime:
    """One rank.

    Attributes:
        idle_ns: Its window without its executions.
        waited_ns: Part of its window in which it had joined a collective and another rank had not; once where
            several are under way.
        waited_for_ns: What the other ranks waited because this one joined last.
        straggler: Its window without waiting is over `STRAGGLER` times the median.
    """

    rank: int
    host: str
    device_ns: int
    idle_ns: int
    waited_ns: int
    waited_for_ns: int
    peak_hbm_bytes: int
    straggler: bool


@frozen
class EngineSpread:
    """Busy time of one engine over the ranks."""

    engine: str
    mean_ns: float
    least_ns: int
    most_ns: int


@frozen
class OperationSpread:
    """One operation over the ranks that have it."""

    operation: str
    total_ns: float
    calls: int
    ranks: int
    least_ns: float
    most_ns: float
    most_rank: int


@frozen
class Bystander:
    """A process that used no device; it is not compared with the ranks.

    Attributes:
        role: "launcher", or "rank 3" where the profile gives it a rank.
    """

    role: str
    host: str
    command: str
    path: str


@frozen
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
    waits = Waits(len(ordered))
    costs = waits.add_all(ordered)
    waited, waited_for = waits.within([(each.begin_ns, each.window_ns) for each in ordered])
    own = [each.window_ns - spent for each, spent in zip(ordered, waited.tolist())]
    median = float(np.median(own)) if own else 0.0
    rows = tuple(
        RankTime(
            rank, partial.key.host, partial.device_ns, partial.window_ns - partial.device_ns,
            int(waited[place]), int(waited_for[place]), partial.peak_hbm_bytes,
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
