"""Charges device time to framework operations, and through them to modules, operations and source lines.

The unit is the *origin*: module, operation name, forward or backward, and source stack. Each moment of an
execution is charged to one of the spans active in it (`exposure`): computing instructions first, then data
movement, then control instructions, then the operation around them, then the execution as a whole. So the
charges of a profile add up to its device time: the sum of its execution spans. What framework operations were
fused into is charged to all of them, each by its share (table FrameworkShare).

Of a range of a profile (`Profile.slice`) the charges add up to the device time within it: what reaches
beyond is
cut. The same time is summed up by HLO opcode and by engine too, so that these add up as well.

A profile is taken in stretches of time, each with at most about `STRETCH_ROWS` spans, so that memory does not
grow with its length. A span that reaches beyond its stretch is cut there, and its rest goes to the next one.
Of a long run of compiled graphs, one execution of each stands for all of them (`repeats`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.time.core_spans import (
    CORE,
    ENGINES,
    EXECUTION_EVENT,
    CoreSpans,
    Owned,
    integers,
)
from neuron_profile.analysis.time.exposure import Spans, exposed_ns
from neuron_profile.analysis.time.repeats import find_repeats
from neuron_tools.profile.reader import Profile

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
STRETCH_ROWS = 1 << 20
COMPILED_FROM = 1 << 17  # spans: below it, loading the compiled kernel takes longer than it saves
_CORES = f"""
SELECT coalesce(process_idx, 0) AS process, coalesce(nc_idx, 0) AS core
FROM SystemProfileEvents WHERE name = '{EXECUTION_EVENT}'
UNION SELECT coalesce(process_idx, 0), coalesce(pcore_idx, 0) FROM FrameworkInstruction
UNION SELECT coalesce(process_idx, 0), coalesce(pcore_idx, 0) FROM Instruction
ORDER BY ALL
"""
_COUNT = "SELECT count(*) AS n, min(start_ts) AS first, max(start_ts) AS last FROM Instruction WHERE "
_OPCODES = """
WITH rows AS (SELECT raw_hlo_id AS hlo, coalesce({column}, '') AS opcode FROM HloInstruction),
opcodes AS (SELECT opcode, row_number() OVER (ORDER BY opcode) - 1 AS code FROM (SELECT DISTINCT opcode FROM
rows))
SELECT {what} FROM rows JOIN opcodes USING (opcode) WHERE hlo IS NOT NULL GROUP BY ALL ORDER BY ALL
"""
_SHARES = "SELECT raw_hlo_id AS hlo, raw_framework_id AS owner, share FROM FrameworkShare ORDER BY hlo, owner"
_ORIGIN_NAMES = "module, operation, backward, stack"
_ORIGINS = f"""
WITH operations AS (
    SELECT id, coalesce(layer, '') AS module, coalesce(framework_name, '') AS operation,
        coalesce(is_backward, false) AS backward, split_part(coalesce(stack_frame_ids, ''), ',', 1) AS stack
    FROM FrameworkInstruction
), origins AS (
    SELECT *, row_number() OVER (ORDER BY {_ORIGIN_NAMES}) - 1 AS code
    FROM (SELECT DISTINCT {_ORIGIN_NAMES} FROM operations)
)
"""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Charge:
    """Device time of all operations of one origin, and how many there were."""

    origin: Origin
    device_ns: float
    count: int


@dataclass(frozen=True, slots=True)
class Charges:
    """The device time of a profile, or of a range of it.

    Attributes:
        unattributed_ns: What belongs to no operation.
        hlo: The same time by HLO opcode; "" = of no HLO operation.
        engines: The same time by `ENGINES`, without those that have none.
    """

    charges: tuple[Charge, ...]
    unattributed_ns: float
    hlo: Mapping[str, float] = field(default_factory=dict)
    engines: Mapping[str, float] = field(default_factory=dict)

    @property
    def device_ns(self) -> float:
        """All device time."""
        return sum(charge.device_ns for charge in self.charges) + self.unattributed_ns


@dataclass(frozen=True)
class _Opcodes:
    """The HLO operations' opcodes, or names: ids ascending, and the place of each one's in `names`."""

    names: list[str]
    ids: Ints
    codes: Ints

    @classmethod
    def of(cls, profile: Profile, column: str) -> _Opcodes:
        names = profile.query(_OPCODES.format(what="code, opcode", column=column))["opcode"].to_pylist()
        rows = profile.query(_OPCODES.format(what="hlo, min(code) AS code", column=column))
        return cls(names, integers(rows, "hlo"), integers(rows, "code"))

    def of_hlo(self, hlo: Ints) -> Ints:
        """The opcode of each HLO operation; the place behind the last where it is not known."""
        return _looked_up(self.ids, self.codes, hlo, np.full(len(hlo), len(self.names), np.int64))

    def named(self, sums: Floats) -> dict[str, float]:
        """Sums by opcode, without those of nothing."""
        found = {name: float(time) for name, time in zip(self.names, sums) if time}
        if sums[-1]:
            found[""] = found.get("", 0.0) + float(sums[-1])
        return found


@dataclass
class _Sums:
    """Exposed time by origin, by HLO opcode and by engine."""

    origin: Floats
    opcode: Floats
    engine: Floats

    @classmethod
    def empty(cls, origins: _Origins, opcodes: _Opcodes) -> _Sums:
        """No time at all."""
        return cls(
            np.zeros(len(origins.rows) + 1 + len(origins.mixes)), np.zeros(len(opcodes.names) + 1),
            np.zeros(len(ENGINES)),
        )  # fmt: skip

    def add(self, other: _Sums, times: int = 1) -> None:
        """Add another's, so many times."""
        self.origin += times * other.origin
        self.opcode += times * other.opcode
        self.engine += times * other.engine


def charge_device_time(
    profile: Profile, process: int | None = None, core: int | None = None, hlo: str = "hlo_opcode"
) -> Charges:
    """Charge all device time of a profile, or of a range of it. O(n log n) in its instructions and transfers.

    Args:
        process: Only what this process of the profile ran.
        core: Only what ran on the NeuronCore of this number.
        hlo: Column of HloInstruction that `Charges.hlo` is summed up by.
    """
    origins, opcodes = _Origins.of(profile), _Opcodes.of(profile, hlo)
    sums = _Sums.empty(origins, opcodes)
    for place in _cores(profile):
        if process in (None, place[0]) and core in (None, place[1]):
            _charge_core(profile, place, _Charging(origins, opcodes), sums)
    exposed = origins.divided(sums.origin)
    counts = np.bincount(origins.codes, minlength=len(origins.rows))
    charges = [Charge(Origin(**row), float(ns), int(n)) for row, ns, n in zip(origins.rows, exposed, counts)]
    charges.sort(key=lambda charge: -charge.device_ns)
    engines = {engine: float(time) for engine, time in zip(ENGINES, sums.engine) if time}
    return Charges(tuple(charges), float(exposed[-1]), opcodes.named(sums.opcode), engines)


@dataclass(frozen=True)
class _Origins:
    """The distinct origins, and which of them each framework operation has.

    Attributes:
        ids: Framework operations, ascending.
        codes: Place of each in `rows`.
        fused: HLO operations made of several framework operations, ascending.
        fused_codes: Place of each in `mixes`.
        mixes: (places in `rows`, shares) of the framework operations of fused ones, each mixture once.
    """

    rows: list[dict[str, Any]]
    ids: Ints
    codes: Ints
    fused: Ints
    fused_codes: Ints
    mixes: list[tuple[Ints, Floats]]

    @classmethod
    def of(cls, profile: Profile) -> _Origins:
        numbered = profile.query(
            f"{_ORIGINS} SELECT id, code FROM operations JOIN origins USING ({_ORIGIN_NAMES})"
        )
        rows = profile.query(f"{_ORIGINS} SELECT {_ORIGIN_NAMES} FROM origins ORDER BY code").to_pylist()
        ids, codes = integers(numbered, "id"), integers(numbered, "code")
        order = np.argsort(ids)
        alone = cls(rows, ids[order], codes[order], _NONE, _NONE, [])
        shares = profile.query(_SHARES)
        if not shares.num_rows:
            return alone
        fused, fused_codes, mixes = _mixtures(
            integers(shares, "hlo"),
            alone.of_owners(integers(shares, "owner"), _NONE),
            shares["share"].to_numpy(),
        )
        return replace(alone, fused=fused, fused_codes=fused_codes, mixes=mixes)

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
class _Charging:
    """What spans are charged to."""

    origins: _Origins
    opcodes: _Opcodes


def _charge_core(profile: Profile, core: tuple[int, int], to: _Charging, sums: _Sums) -> None:
    """Add what one NeuronCore's spans are charged to."""
    whole = CoreSpans.of(profile, core)
    repeats = find_repeats(profile, core)
    if repeats is not None:
        for repeat in repeats:
            once = _Sums.empty(to.origins, to.opcodes)
            here = whole.starting(profile, core, repeat.begin_ns, repeat.end_ns)
            _expose([tier.cut(repeat.begin_ns, repeat.end_ns) for tier in here], to, once)
            sums.add(once, repeat.count)
        return
    low, high = profile.range_ns or (_EARLIEST, _LATEST)
    rest = [whole.operations.cut(0, 0)] * TIERS
    for begin, end in pairwise(_edges(profile, core)):
        here = whole.starting(profile, core, begin, end)
        spans = [_joined(kept, new) for kept, new in zip(rest, here)]
        _expose([tier.cut(max(begin, low), min(end, high)) for tier in spans], to, sums)
        rest = [tier.chosen(tier.spans.end_ns > end) for tier in spans]


_NONE = np.zeros(0, np.int64)
TIERS = 5


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


def _edges(profile: Profile, core: tuple[int, int]) -> list[int]:
    """Times that divide a NeuronCore's spans into stretches; the last holds all that follows."""
    row = profile.query(f"{_COUNT} {CORE.format(core='pcore_idx')}", core).to_pylist()[0]
    stretches = max(1, -(-int(row["n"]) // STRETCH_ROWS))
    if stretches == 1:
        return [_EARLIEST, _LATEST]
    inner = np.linspace(int(row["first"]), int(row["last"]), stretches + 1)[1:-1].astype(np.int64)
    return [_EARLIEST, *np.unique(inner).tolist(), _LATEST]


_EARLIEST, _LATEST = -(1 << 62), 1 << 62


def _joined(one: Owned, other: Owned) -> Owned:
    if not len(one):
        return other
    return Owned(
        Spans(
            np.concatenate([one.spans.start_ns, other.spans.start_ns]),
            np.concatenate([one.spans.end_ns, other.spans.end_ns]),
        ),
        np.concatenate([one.owner, other.owner]),
        np.concatenate([one.hlo, other.hlo]),
        np.concatenate([one.engine, other.engine]),
    )


def _expose(tiers: list[Owned], to: _Charging, sums: _Sums) -> None:
    """Add the exposed time of one stretch's spans."""
    owner, hlo, engine = (
        np.concatenate([getattr(tier, name) for tier in tiers]) for name in ("owner", "hlo", "engine")
    )
    times = _exposed(tiers)
    for total, places in (
        (sums.origin, to.origins.of_owners(owner, hlo)),
        (sums.opcode, to.opcodes.of_hlo(hlo)),
        (sums.engine, engine),
    ):
        total += np.bincount(places, weights=times, minlength=len(total))


def _exposed(tiers: list[Owned]) -> Floats:
    """Exposed ns of each span of all tiers."""
    if sum(map(len, tiers)) < COMPILED_FROM:
        return np.concatenate(exposed_ns([tier.spans for tier in tiers]))
    from neuron_profile.analysis.time.exposure_kernel import add_exposed

    start = np.concatenate([tier.spans.start_ns for tier in tiers])
    end = np.concatenate([tier.spans.end_ns for tier in tiers])
    number = np.repeat(np.arange(len(tiers), dtype=np.int8), [len(tier) for tier in tiers])
    by_start, by_end = (np.argsort(times, kind="stable") for times in (start, end))
    exposed = np.zeros(len(start))
    add_exposed(start, end, number, np.arange(len(start)), by_start, by_end, len(tiers), exposed)
    return exposed


def _cores(profile: Profile) -> list[tuple[int, int]]:
    """Every (process_idx, core index) that ran something."""
    rows = profile.query(_CORES).to_pylist()
    return [(row["process"], row["core"]) for row in rows]
