"""The operations of one NeuronCore and level, and the pieces of time that each is charged with in a range."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa

from neuron_profile.analysis.time.core_spans import Owned
from neuron_profile.analysis.time.core_window import CoreWindow
from neuron_profile.analysis.time.pieces import Pieces, divided, pieces_of
from neuron_tools.arrays import Floats, Ints
from neuron_tools.profile.reader import Profile

NOTHING = -1
NONE = np.zeros(0, np.int64)
KEPT_RANGES = 4
TABLES = {"framework": ("FrameworkInstruction", "id", "framework_name"),
          "hlo": ("HloInstruction", "raw_hlo_id", "hlo_name")}  # fmt: skip
"""Levels that time is charged to: table, its id, its name."""
_NAME = pa.dictionary(pa.int32(), pa.string())
_SHARES = "SELECT raw_hlo_id AS hlo, raw_framework_id AS owner, share FROM FrameworkShare ORDER BY hlo, owner"


@dataclass(frozen=True)
class Operations:
    """The operations of a level, on whichever core they ran.

    Attributes:
        ids: Ascending.
        rows: The row of each in the level's table.
        names: The name of each row.
        mixed: HLO operations that are made of several framework operations, ascending.
        mixtures: Keys and shares of the parts of each of them.
    """

    level: str
    ids: Ints
    rows: Ints
    names: pa.DictionaryArray
    mixed: Ints
    mixtures: list[tuple[Ints, Floats]]

    @classmethod
    def of(cls, profile: Profile, level: str) -> Operations:
        """Read those of a profile."""
        ids, names = _ids_and_names(profile, *TABLES[level])
        order = np.argsort(ids, kind="stable")
        mixtures = _mixtures(ids[order], profile.query(_SHARES)) if level == "framework" else (NONE, [])
        return cls(level, ids[order], order, names, *mixtures)

    def keys(self, tier: Owned) -> Ints:
        """Key of each span: a place in the ids, behind them that of a mixture, or `NOTHING`."""
        if self.level == "hlo":
            return _found(self.ids, tier.hlo)
        return _looked_up(self.mixed, tier.hlo, len(self.ids), _found(self.ids, tier.owner))


def _ids_and_names(profile: Profile, table: str, key: str, name: str) -> tuple[Ints, pa.DictionaryArray]:
    """The id and the name of each row of a table, as they are stored: there a name is a number already."""
    ids, names = [NONE], [pa.array([], _NAME)]
    for batch in profile.stored_batches(table, (key, name)):
        ids.append(batch[key].to_numpy().astype(np.int64))
        named = batch[name] if name in batch.schema.names else pa.nulls(len(batch), _NAME)
        names.append(_named(named) if named.null_count else named.cast(_NAME))
    return np.concatenate(ids), pa.chunked_array(names, _NAME).combine_chunks()


def _named(names: pa.Array) -> pa.DictionaryArray:
    """Names with "" for those that are missing."""
    return names.cast(pa.string()).fill_null("").dictionary_encode().cast(_NAME)


def _mixtures(ids: Ints, shares: pa.Table) -> tuple[Ints, list[tuple[Ints, Floats]]]:
    """HLO operations made of several framework operations, ascending, and (keys, shares) of each."""
    fused, first = np.unique(shares["hlo"].to_numpy().astype(np.int64), return_index=True)
    keys, share = _found(ids, shares["owner"].to_numpy().astype(np.int64)), shares["share"].to_numpy()
    cuts = pairwise([*first.tolist(), shares.num_rows])
    return fused, [(keys[low:high], share[low:high] / share[low:high].sum()) for low, high in cuts]


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
        operations = self._operations
        pieces = pieces_of(found.spans, np.concatenate([operations.keys(tier) for tier in found.tiers]))
        pieces = divided(pieces, operations.mixtures, len(operations.ids))
        known = pieces.chosen(pieces.key >= 0)
        self._kept.appendleft((low, high, Pieces(known.start_ns, known.end_ns, operations.rows[known.key])))
        return self._kept[0][2].cut(begin_ns, end_ns)

    def names(self, rows: Ints) -> pa.DictionaryArray:
        """Names of some rows of the level's table."""
        return self._operations.names.take(pa.array(rows))

    def prepare(self) -> None:
        """Read what every range needs."""
        self.window.prepare()
        _ = self._operations

    @property
    def _operations(self) -> Operations:
        profile = self.window.profile
        return profile.kept(("charged operations", self.level), lambda: Operations.of(profile, self.level))


def _found(ids: Ints, wanted: Ints) -> Ints:
    return _looked_up(ids, wanted, 0, np.full(len(wanted), NOTHING, np.int64))


def _looked_up(ids: Ints, wanted: Ints, offset: int, otherwise: Ints) -> Ints:
    """Place of each wanted id, `offset` added, or what `otherwise` has in its place."""
    if not len(ids):
        return otherwise
    place = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where((ids[place] == wanted) & (wanted >= 0), place + offset, otherwise)
