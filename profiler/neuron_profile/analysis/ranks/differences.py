"""Two runs of a job compared rank by rank, each pair where its profiles are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from neuron_profile.analysis.comparison.difference import Delta, Difference
from neuron_profile.analysis.ranks.partial import MEMORY_LIMIT, RankKey, find_ranks
from neuron_profile.analysis.ranks.spread import Engine, Progress, in_order, spread
from neuron_tools.errors import UsageError
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import open_profile

MOST_DELTAS = 200


@frozen
class RankDifference:
    """One rank of two runs.

    Attributes:
        rank: As the profiles say; its place where they do not.
        deltas: The operations that moved most.
    """

    rank: int
    base: str
    new: str
    base_device_ns: int
    new_device_ns: int
    base_idle_ns: int
    new_idle_ns: int
    deltas: tuple[Delta, ...]

    @property
    def delta_ns(self) -> int:
        """By how much the rank's device and idle time grew."""
        return self.new_device_ns + self.new_idle_ns - self.base_device_ns - self.base_idle_ns


@frozen
class _Pair:
    """A rank's profiles in two runs."""

    rank: int
    base: str
    new: str


def compare_ranks(
    base: Sequence[str],
    new: Sequence[str],
    engine: Engine,
    progress: Progress | None = None,
) -> tuple[RankDifference, ...]:
    """Each rank of a run with the same rank of another, by number.

    Args:
        base, new: Profiles of one rank each.
        progress: Called with the pairs done and all of them.

    Raises:
        NeuronToolsError: A profile cannot be opened or has no work on a device, or the scheduler cannot be
            reached.
        UsageError: The two have not the same ranks, or a profile holds several.
    """
    pairs = _pairs(find_ranks(list(base)), find_ranks(list(new)))
    return tuple(in_order(spread(compare_rank, pairs, engine, progress)))


def compare_rank(pair: _Pair) -> RankDifference:
    """One rank's profiles compared; both are opened and closed again."""
    from neuron_profile.analysis.comparison.difference import compare

    opened = partial(open_profile, memory_limit=MEMORY_LIMIT)
    with opened(pair.base) as before, opened(pair.new) as after:
        found: Difference = compare(before, after)
    return RankDifference(
        pair.rank, pair.base, pair.new, found.base_device_ns, found.new_device_ns, found.base_idle_ns,
        found.new_idle_ns, found.deltas[:MOST_DELTAS],
    )  # fmt: skip


def _pairs(base: Sequence[RankKey], new: Sequence[RankKey]) -> list[_Pair]:
    """By the ranks' numbers; where profiles have none, or the same one, by their places."""
    for keys in (base, new):
        if len({key.path for key in keys}) < len(keys):
            raise UsageError("A profile holds several ranks: compare such profiles with neuron-profile diff.")
    numbers = [[key.rank for key in keys] for keys in (base, new)]
    is_numbered = all(None not in each and len(set(each)) == len(each) for each in numbers)
    if len(base) != len(new) or (is_numbered and numbers[0] != numbers[1]):
        raise UsageError(
            f"The two runs have not the same ranks ({len(base):,} and {len(new):,}): name those of both."
        )
    return [
        _Pair(one.rank if is_numbered and one.rank is not None else place, one.path, other.path)
        for place, (one, other) in enumerate(zip(base, new))
    ]
