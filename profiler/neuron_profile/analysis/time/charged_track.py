"""The operations of one NeuronCore and level, and the pieces of time that each is charged with in a range."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.time.core_spans import CoreSpans, Owned
from neuron_profile.analysis.time.pieces import Pieces, divided, pieces_of
from neuron_tools.profile.reader import Profile

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
MOST_SPANS = 150_000
"""Instructions and transfers of a range that is divided; of a longer one it would take more than a moment."""
NOTHING = -1
TABLES = {"framework": ("FrameworkInstruction", "id", "framework_name"),
          "hlo": ("HloInstruction", "raw_hlo_id", "hlo_name")}  # fmt: skip
"""Levels that time is charged to: table, its id, its name."""
_WORK = ("Instruction", "DmaPacketAggregated")
_SHARES = "SELECT raw_hlo_id AS hlo, raw_framework_id AS owner, share FROM FrameworkShare ORDER BY hlo, owner"


@dataclass(frozen=True)
class ChargedTrack:
    """What time on one NeuronCore can be charged to at a level.

    Attributes:
        ids: Ids of the level's operations, ascending.
        rows: Row of each in its table.
        names: Name of each row of the table.
    """

    profile: Profile
    core: tuple[int, int]
    level: str
    ids: Ints
    rows: Ints
    names: tuple[str, ...]

    @classmethod
    def of(cls, profile: Profile, process: int, core: int, level: str) -> ChargedTrack:
        """The operations of a level.

        Raises:
            KeyError: Time is not charged to the level: it must be one of `TABLES`.
        """
        table, key, name = TABLES[level]
        rows = profile.query(f"SELECT {key} AS id, coalesce({name}, '') AS name FROM \"{table}\"")
        ids = rows["id"].fill_null(NOTHING).to_numpy().astype(np.int64)
        order = np.argsort(ids, kind="stable")
        return cls(profile, (process, core), level, ids[order], order, tuple(rows["name"].to_pylist()))

    def between(self, begin_ns: int, end_ns: int) -> Pieces | None:
        """Pieces of a range, with the row of the table as key; None where the range holds too much."""
        reach = begin_ns, end_ns, self._longest_ns
        tiers = self._spans.overlapping(self.profile, self.core, *reach, MOST_SPANS)
        if tiers is None:
            return None
        pieces = pieces_of([tier.spans for tier in tiers], [self._keys(tier) for tier in tiers])
        pieces = divided(pieces, self._mixtures[1], len(self.ids))
        known = pieces.chosen(pieces.key >= 0)
        return Pieces(known.start_ns, known.end_ns, self.rows[known.key])

    @cached_property
    def _spans(self) -> CoreSpans:
        return CoreSpans.of(self.profile, self.core)

    @cached_property
    def _longest_ns(self) -> int:
        """Of the longest instruction or transfer: what reaches into a range begins at most so long before."""
        found = [self.profile.query(f"SELECT max(end_ts - start_ts) AS ns FROM {table}") for table in _WORK]
        return max(int(rows["ns"][0].as_py() or 0) for rows in found)

    @cached_property
    def _mixtures(self) -> tuple[Ints, list[tuple[Ints, Floats]]]:
        """HLO operations made of several framework operations, ascending, and (keys, shares) of each."""
        rows = self.profile.query(_SHARES) if self.level == "framework" else None
        if rows is None or not rows.num_rows:
            return np.zeros(0, np.int64), []
        fused, first = np.unique(rows["hlo"].to_numpy(), return_index=True)
        keys, share = self._found(rows["owner"].to_numpy().astype(np.int64)), rows["share"].to_numpy()
        cuts = list(pairwise([*first.tolist(), rows.num_rows]))
        return fused, [(keys[low:high], share[low:high] / share[low:high].sum()) for low, high in cuts]

    def _keys(self, tier: Owned) -> Ints:
        """Key of each span: a place in `ids`, behind them that of a mixture, or `NOTHING`."""
        if self.level == "hlo":
            return self._found(tier.hlo)
        return _looked_up(self._mixtures[0], tier.hlo, len(self.ids), self._found(tier.owner))

    def _found(self, wanted: Ints) -> Ints:
        return _looked_up(self.ids, wanted, 0, np.full(len(wanted), NOTHING, np.int64))


def _looked_up(ids: Ints, wanted: Ints, offset: int, otherwise: Ints) -> Ints:
    """Place of each wanted id, `offset` added, or what `otherwise` has in its place."""
    if not len(ids):
        return otherwise
    place = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where((ids[place] == wanted) & (wanted >= 0), place + offset, otherwise)
