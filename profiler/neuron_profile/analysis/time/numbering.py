"""Numbers for what time is charged to: origins of framework operations, and opcodes of HLO operations.

An *origin* is a module, an operation's name, forward or backward, and a source stack. What several operations
were fused into is a *mixture* of origins: what it is charged with is dealt out to them by their shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuron_profile.analysis.time.chosen_rows import chosen_rows
from neuron_profile.analysis.time.core_spans import ENGINES, Owned, integers
from neuron_profile.analysis.time.logical_cores import of_first_cores
from neuron_tools.arrays import Floats, Ints, Mask
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_NONE = np.zeros(0, np.int64)
AnyOrigins = TypeVar("AnyOrigins", bound="Origins")
_SHARES = (
    "SELECT raw_hlo_id AS hlo, raw_framework_id AS owner, share FROM FrameworkShare "
    "WHERE {chosen} ORDER BY hlo, owner"
)
_ALL = "true"
_OPCODES = """
SELECT coalesce({column}, '') AS opcode, list(raw_hlo_id) AS ids FROM HloInstruction
WHERE raw_hlo_id IS NOT NULL AND {chosen} GROUP BY ALL ORDER BY ALL
"""
_ORIGIN_NAMES = "module, operation, backward, stack"
_OPERATIONS = """
    SELECT id, start_ts, end_ts, coalesce(layer, '') AS module, coalesce(framework_name, '') AS operation,
        coalesce(is_backward, false) AS backward, split_part(coalesce(stack_frame_ids, ''), ',', 1) AS stack,
        pcore_idx
    FROM FrameworkInstruction
"""
_ORIGINS_OF = f"""
SELECT {_ORIGIN_NAMES}, list(id) AS ids FROM ({_OPERATIONS}) WHERE {{chosen}} GROUP BY ALL
ORDER BY {_ORIGIN_NAMES}
"""
_COUNTS = f"""
SELECT {_ORIGIN_NAMES}, count(*) FILTER ({{is_counted}}) AS n FROM ({_OPERATIONS}) GROUP BY ALL ORDER BY ALL
"""
_ORIGINS = f"""
WITH operations AS ({_OPERATIONS}), origins AS (
    SELECT *, row_number() OVER (ORDER BY {_ORIGIN_NAMES}) - 1 AS code
    FROM (SELECT DISTINCT {_ORIGIN_NAMES} FROM operations)
)
"""


@frozen
class Origin:
    """Where framework operations came from.

    Attributes:
        module: Path such as "/model/layers/0"; "" = none.
        operation: Framework name such as "aten::addmm".
        stack: Id of the innermost source frame; "" = none.
    """

    module: str
    operation: str
    backward: bool
    stack: str


@dataclass(frozen=True)
class Opcodes:
    """The HLO operations' opcodes, or names: ids ascending, and the place of each one's in `names`.

    Of an id that stands there with several, the first counts.
    """

    column: str
    names: list[str]
    ids: Ints
    codes: Ints

    @classmethod
    def of(cls, profile: Profile, column: str) -> Opcodes:
        """Number the values of a column of HloInstruction."""
        return cls._of_groups(column, profile.query(_OPCODES.format(column=column, chosen=_ALL)))

    @classmethod
    def named_by(cls, profile: Profile, column: str, hlo: Ints) -> Opcodes:
        """Number the values of a column of some HLO operations."""
        query = _OPCODES.format(column=column, chosen="{chosen}")
        return cls._of_groups(column, chosen_rows(profile, "HloInstruction", query, "raw_hlo_id", hlo))

    @classmethod
    def _of_groups(cls, column: str, groups: pa.Table) -> Opcodes:
        return cls(column, groups["opcode"].to_pylist(), *_flattened(groups))

    def of_hlo(self, hlo: Ints) -> Ints:
        """The opcode of each HLO operation; the place behind the last where it is not known."""
        return _looked_up(self.ids, self.codes, hlo, np.full(len(hlo), len(self.names), np.int64))

    def named(self, sums: Floats) -> dict[str, float]:
        """Sums by opcode, without those of nothing."""
        found = {name: float(time) for name, time in zip(self.names, sums) if time}
        if sums[-1]:
            found[""] = found.get("", 0.0) + float(sums[-1])
        return found


@dataclass(frozen=True)
class Origins:
    """The distinct origins, and which of them each framework operation has.

    Attributes:
        ids: Framework operations, ascending.
        codes: Place of each in `rows`.
        fused: HLO operations made of several framework operations, ascending.
        fused_codes: Place of each in `mixes`.
        mixes: (places in `rows`, shares) of the framework operations of fused ones, each mixture once.
    """

    rows: list[Origin]
    ids: Ints
    codes: Ints
    fused: Ints
    fused_codes: Ints
    mixes: list[tuple[Ints, Floats]]

    @classmethod
    def of(cls, profile: Profile, owners: Ints, hlo: Ints) -> Origins:
        """Number the origins of some framework operations, and of what some HLO operations are made of."""
        shares = chosen_rows(profile, "FrameworkShare", _SHARES, "raw_hlo_id", hlo)
        every = np.concatenate([owners, integers(shares, "owner")])
        groups = chosen_rows(profile, "FrameworkInstruction", _ORIGINS_OF, "id", every)
        rows = [Origin(**row) for row in groups.drop_columns(["ids"]).to_pylist()]
        return cls(rows, *_flattened(groups), _NONE, _NONE, []).mixed(shares)

    def mixed(self: AnyOrigins, shares: pa.Table) -> AnyOrigins:
        """The same, with what HLO operations are made of: rows of FrameworkShare."""
        if not shares.num_rows:
            return self
        fused, fused_codes, mixes = _mixtures(
            integers(shares, "hlo"),
            self.of_owners(integers(shares, "owner"), _NONE),
            shares["share"].to_numpy(),
        )
        return replace(self, fused=fused, fused_codes=fused_codes, mixes=mixes)

    def of_owners(self, owners: Ints, hlo: Ints) -> Ints:
        """What each span is charged to: a place in `rows`, the one behind the last where its owner is not
        known, and after that the mixtures; `hlo` may be empty.
        """
        unknown = np.full(len(owners), len(self.rows), np.int64)
        found = _looked_up(self.ids, self.codes, owners, unknown)
        if not len(self.fused) or not len(hlo):
            return found
        return _looked_up(self.fused, self.fused_codes + len(self.rows) + 1, hlo, found)

    def divided(self, exposed: Floats) -> Floats:
        """Time by place in `rows` and of unknown owners, that of mixtures dealt out by their shares."""
        result: Floats = exposed[: len(self.rows) + 1].copy()
        for (codes, shares), time in zip(self.mixes, exposed[len(self.rows) + 1 :]):
            np.add.at(result, codes, shares * time)
        return result


@dataclass(frozen=True)
class HeldOrigins(Origins):
    """Those of all operations of a profile.

    Attributes:
        start_ns, end_ns: When each ran.
        is_counted: Whether each is a call of its own, not the part of a second physical core.
    """

    start_ns: Ints
    end_ns: Ints
    is_counted: Mask

    @classmethod
    def of_all(cls, profile: Profile) -> HeldOrigins:
        """Number the origins of a profile's operations."""
        numbered = profile.query(
            f"{_ORIGINS} SELECT id, code, start_ts, end_ts, {of_first_cores(profile)} AS is_counted "
            f"FROM operations JOIN origins USING ({_ORIGIN_NAMES})"
        )
        rows = profile.query(f"{_ORIGINS} SELECT {_ORIGIN_NAMES} FROM origins ORDER BY code").to_pylist()
        order = np.argsort(integers(numbered, "id"))
        ids, codes, start_ns, end_ns = (
            integers(numbered, name)[order] for name in ("id", "code", "start_ts", "end_ts")
        )
        alone = cls(
            [Origin(**row) for row in rows], ids, codes, _NONE, _NONE, [], start_ns, end_ns,
            numbered["is_counted"].to_numpy().astype(bool)[order],
        )  # fmt: skip
        return alone.mixed(profile.query(_SHARES.format(chosen=_ALL)))

    def counts(self, range_ns: tuple[int, int] | None) -> dict[Origin, int]:
        """How many operations of each origin there are, at least in part within a range."""
        counted = self.is_counted
        if range_ns is not None:
            low, high = range_ns
            reaches = (self.end_ns > low) | (self.start_ns >= low)
            counted = counted & (self.start_ns < high) & reaches
        return dict(zip(self.rows, np.bincount(self.codes[counted], minlength=len(self.rows)).tolist()))


def count_origins(profile: Profile) -> dict[Origin, int]:
    """How many operations of each origin a profile, or a range of it, has; in order."""
    rows = profile.query(_COUNTS.format(is_counted=of_first_cores(profile))).to_pylist()
    return {Origin(row["module"], row["operation"], row["backward"], row["stack"]): row["n"] for row in rows}


@dataclass
class Sums:
    """Exposed time in ns by origin, by HLO opcode and by engine: views of `joined`, one after another."""

    joined: Floats
    origin: Floats
    opcode: Floats
    engine: Floats

    @classmethod
    def empty(cls, to: Numbering) -> Sums:
        """No time at all."""
        sizes = (
            len(to.origins.rows) + 1 + len(to.origins.mixes),
            len(to.opcodes.names) + 1,
            len(ENGINES),
        )
        joined = np.zeros(sum(sizes))
        return cls(joined, *np.split(joined, np.cumsum(sizes)[:-1]))

    def add(self, other: Sums, times: int = 1) -> None:
        """Add another's, so many times."""
        self.joined += times * other.joined


@dataclass(frozen=True)
class Numbering:
    """The numbers of what spans are charged to."""

    origins: Origins
    opcodes: Opcodes

    @classmethod
    def of_spans(cls, profile: Profile, tiers: Sequence[Owned], column: str) -> Numbering:
        """Numbers of what some spans alone are charged to.

        Args:
            column: Of HloInstruction, as in `Opcodes.of`.
        """
        owners, hlo = (np.concatenate([getattr(tier, name) for tier in tiers]) for name in ("owner", "hlo"))
        return cls(Origins.of(profile, owners, hlo), Opcodes.named_by(profile, column, hlo))


def _flattened(groups: pa.Table) -> tuple[Ints, Ints]:
    """Ids, ascending, of groups that each have a list of them, and the group of each."""
    lists = groups["ids"].combine_chunks()
    ids = lists.flatten().to_numpy().astype(np.int64, copy=False)
    codes = np.repeat(np.arange(groups.num_rows), pc.list_value_length(lists).to_numpy())
    order = np.argsort(ids, kind="stable")
    return ids[order], codes[order]


def _looked_up(ids: Ints, codes: Ints, wanted: Ints, otherwise: Ints) -> Ints:
    """The code of each wanted id, or what `otherwise` has in its place."""
    if not len(ids):
        return otherwise
    place = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[place] == wanted, codes[place], otherwise)


def _mixtures(hlo: Ints, codes: Ints, shares: Floats) -> tuple[Ints, Ints, list[tuple[Ints, Floats]]]:
    """Fused HLO operations, which mixture each is, and the mixtures; rows of one operation stand together."""
    fused, first = np.unique(hlo, return_index=True)
    known: dict[bytes, int] = {}
    mixes: list[tuple[Ints, Floats]] = []
    numbers = np.empty(len(fused), np.int64)
    for row, (begin, end) in enumerate(pairwise([*first.tolist(), len(hlo)])):
        mine, parts = codes[begin:end], shares[begin:end]
        key = mine.tobytes() + parts.tobytes()
        if key not in known:
            known[key] = len(mixes)
            mixes.append((mine, parts / parts.sum()))
        numbers[row] = known[key]
    return fused, numbers, mixes
