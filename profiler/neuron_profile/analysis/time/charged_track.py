"""The operations of one NeuronCore and level, and the pieces of time that each is charged with in a range."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_profile.analysis.time.core_spans import CoreSpans, Owned
from neuron_profile.analysis.time.exposure import OrderedSpans
from neuron_profile.analysis.time.pieces import Pieces, divided, pieces_of
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.timeline.track import Track

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
MOST_SPANS = 100_000
"""Instructions and transfers of a range that is divided; of a longer one it would take more than a moment."""
NOTHING = -1
TABLES = {"framework": ("FrameworkInstruction", "id", "framework_name"),
          "hlo": ("HloInstruction", "raw_hlo_id", "hlo_name")}  # fmt: skip
"""Levels that time is charged to: table, its id, its name."""
WORK = ("Instruction", "DmaPacketAggregated")
KEPT_RANGES = 4
_SHARES = "SELECT raw_hlo_id AS hlo, raw_framework_id AS owner, share FROM FrameworkShare ORDER BY hlo, owner"


@dataclass(frozen=True, slots=True)
class CoreRange:
    """A range of time on a NeuronCore: its spans by priority, and in order."""

    begin_ns: int
    end_ns: int
    tiers: list[Owned]
    spans: OrderedSpans


class CoreWindow:
    """What runs on a NeuronCore in a range with few enough spans; the last ranges looked at are kept."""

    def __init__(self, profile: Profile, core: tuple[int, int]) -> None:
        self.profile = profile
        self._core = core
        self._kept: deque[CoreRange] = deque(maxlen=KEPT_RANGES)

    def around(self, begin_ns: int, end_ns: int) -> CoreRange | None:
        """A range that holds this one, its spans; None where this one holds too many spans."""
        for kept in self._kept:
            if kept.begin_ns <= begin_ns and end_ns <= kept.end_ns:
                return kept
        if self._count(begin_ns, end_ns) > MOST_SPANS:
            return None
        tiers = self._spans.overlapping(self.profile, self._core, begin_ns, end_ns, self._longest_ns)
        found = CoreRange(begin_ns, end_ns, tiers, OrderedSpans.of([tier.spans for tier in tiers]))
        self._kept.appendleft(found)
        return found

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


@dataclass(frozen=True)
class ChargedTrack:
    """What time on one NeuronCore can be charged to at a level; what it has of the last ranges is kept."""

    window: CoreWindow
    level: str
    _kept: deque[tuple[int, int, Pieces]] = field(default_factory=lambda: deque(maxlen=KEPT_RANGES))

    def between(self, begin_ns: int, end_ns: int) -> Pieces | None:
        """Pieces of a range, with the row of the table as key; None where the range holds too much."""
        for low, high, pieces in self._kept:
            if low <= begin_ns and end_ns <= high:
                return pieces.cut(begin_ns, end_ns)
        found = self.window.around(begin_ns, end_ns)
        if found is None:
            return None
        low, high = found.begin_ns, found.end_ns
        pieces = pieces_of(found.spans, np.concatenate([self._keys(tier) for tier in found.tiers]))
        pieces = divided(pieces, self._mixtures[1], len(self._ids))
        known = pieces.chosen(pieces.key >= 0)
        self._kept.appendleft((low, high, Pieces(known.start_ns, known.end_ns, self._rows[known.key])))
        return self._kept[0][2].cut(begin_ns, end_ns)

    def names(self, rows: Ints) -> pa.DictionaryArray:
        """Names of some rows of the level's table."""
        return self._operations[2].take(pa.array(rows))

    @cached_property
    def _operations(self) -> tuple[Ints, Ints, pa.DictionaryArray]:
        """Ids of the level's operations, ascending; the row of each in its table; the name of each row."""
        table, key, name = TABLES[self.level]
        query = f"SELECT {key} AS id, coalesce({name}, '') AS name FROM \"{table}\""
        rows = self.window.profile.query(query)
        ids = rows["id"].fill_null(NOTHING).to_numpy().astype(np.int64)
        order = np.argsort(ids, kind="stable")
        return ids[order], order, rows["name"].combine_chunks().dictionary_encode()

    @property
    def _ids(self) -> Ints:
        return self._operations[0]

    @property
    def _rows(self) -> Ints:
        return self._operations[1]

    @cached_property
    def _mixtures(self) -> tuple[Ints, list[tuple[Ints, Floats]]]:
        """HLO operations made of several framework operations, ascending, and (keys, shares) of each."""
        rows = self.window.profile.query(_SHARES) if self.level == "framework" else None
        if rows is None or not rows.num_rows:
            return np.zeros(0, np.int64), []
        fused, first = np.unique(rows["hlo"].to_numpy(), return_index=True)
        keys, share = self._found(rows["owner"].to_numpy().astype(np.int64)), rows["share"].to_numpy()
        cuts = list(pairwise([*first.tolist(), rows.num_rows]))
        return fused, [(keys[low:high], share[low:high] / share[low:high].sum()) for low, high in cuts]

    def _keys(self, tier: Owned) -> Ints:
        """Key of each span: a place in the ids, behind them that of a mixture, or `NOTHING`."""
        if self.level == "hlo":
            return self._found(tier.hlo)
        return _looked_up(self._mixtures[0], tier.hlo, len(self._ids), self._found(tier.owner))

    def _found(self, wanted: Ints) -> Ints:
        return _looked_up(self._ids, wanted, 0, np.full(len(wanted), NOTHING, np.int64))


def _looked_up(ids: Ints, wanted: Ints, offset: int, otherwise: Ints) -> Ints:
    """Place of each wanted id, `offset` added, or what `otherwise` has in its place."""
    if not len(ids):
        return otherwise
    place = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where((ids[place] == wanted) & (wanted >= 0), place + offset, otherwise)
