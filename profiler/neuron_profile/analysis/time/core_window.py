"""What runs on one NeuronCore in a range of time: read once for all that look at it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from math import log2
from threading import Lock

from neuron_profile.analysis.time.core_spans import CoreSpans, Owned
from neuron_tools.profile.exposure import OrderedSpans
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.timeline.track import Track

MOST_SPANS = 100_000
"""Instructions and transfers of a range that is held; to read and divide more takes more than a moment."""
MOST_HELD = 1 << 19
"""Spans of all ranges that are held of a profile, some 100 bytes each, however many NeuronCores it has."""
FINEST_TILE = 10
"""A timeline's tile is at least 2**10 ns long."""
WORK = ("Instruction", "DmaPacketAggregated")
Core = tuple[int, int]


@dataclass(frozen=True)
class CoreRange:
    """A range of time on a NeuronCore: its spans by priority, and in order."""

    begin_ns: int
    end_ns: int
    tiers: list[Owned]

    def __len__(self) -> int:
        return sum(map(len, self.tiers))

    @cached_property
    def spans(self) -> OrderedSpans:
        """The spans of all tiers, in order."""
        return OrderedSpans.of([tier.spans for tier in self.tiers])

    def holds(self, begin_ns: int, end_ns: int) -> bool:
        """Whether another range lies in this one."""
        return self.begin_ns <= begin_ns and end_ns <= self.end_ns


class HeldRanges:
    """The ranges of all NeuronCores that were read last, with at most `MOST_HELD` spans.

    Attributes:
        lock: Whoever reads a range holds it: several panels ask for the same one at once.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self._held: deque[tuple[Core, CoreRange]] = deque()

    def around(self, core: Core, begin_ns: int, end_ns: int) -> CoreRange | None:
        """A range of a NeuronCore that holds this one."""
        return next(
            (held for owner, held in self._held if owner == core and held.holds(begin_ns, end_ns)), None
        )

    def add(self, core: Core, read: CoreRange) -> None:
        """Hold a range; those read longest ago go."""
        self._held.appendleft((core, read))
        while len(self._held) > 1 and sum(len(held) for _, held in self._held) > MOST_HELD:
            self._held.pop()


class CoreWindow:
    """What runs on a NeuronCore in a range with few enough spans.

    Args:
        held: Ranges that were read before; the new ones are added.
    """

    def __init__(self, profile: Profile, core: Core, held: HeldRanges) -> None:
        self.profile = profile
        self._core = core
        self._held = held

    def around(self, begin_ns: int, end_ns: int) -> CoreRange | None:
        """A range that holds this one, its spans; None where this one holds too many spans."""
        with self._held.lock:
            found = self._held.around(self._core, begin_ns, end_ns)
            if found is None and self._count(begin_ns, end_ns) <= MOST_SPANS:
                found = CoreRange(begin_ns, end_ns, self._read(begin_ns, end_ns))
                self._held.add(self._core, found)
            return found

    def _read(self, begin_ns: int, end_ns: int) -> list[Owned]:
        return self._spans.overlapping(self.profile, self._core, begin_ns, end_ns, self._longest_ns)

    def prepare(self) -> None:
        """Read what every range needs."""
        _ = self._spans, self._longest_ns

    def aligned(self, begin_ns: int, end_ns: int) -> CoreRange | None:
        """As `around`, of the tiles of a timeline that shows this range: both read the same then."""
        level = max(round(log2(max(end_ns - begin_ns, 1))), FINEST_TILE)
        first, last = begin_ns >> level, -(-end_ns >> level)
        return self.around(first << level, last << level) or self.around(begin_ns, end_ns)

    def _count(self, begin_ns: int, end_ns: int) -> int:
        """Instructions and transfers that begin in a range, from the timeline's index."""
        if not self._tracks:
            return 0
        drawn = self.profile.timelines(self._tracks, begin_ns, end_ns, 1)
        return int(drawn.column("count").to_numpy().sum())

    @cached_property
    def _tracks(self) -> list[Track]:
        process, core = self._core
        return [
            track
            for track in self.profile.tracks()
            if track.table in WORK and (track.process_idx, track.core_idx or 0) == (process, core)
        ]

    @cached_property
    def _spans(self) -> CoreSpans:
        return self.profile.kept(("core spans", self._core), lambda: CoreSpans.of(self.profile, self._core))

    @cached_property
    def _longest_ns(self) -> int:
        """Of the longest instruction or transfer: what reaches into a range begins at most so long before."""
        if not self._tracks:
            return 0
        drawn = self.profile.timelines(self._tracks, pixels=1)
        return int(drawn.column("span_duration_ns").to_numpy().max(initial=0))


def core_window(whole: Profile, core: Core) -> CoreWindow:
    """The window on a NeuronCore (process_idx, number) of a whole profile, the same for all that ask."""
    held = whole.kept("held ranges", HeldRanges)
    return whole.kept(("core window", core), lambda: CoreWindow(whole, core, held))
