"""Charges device time to framework operations, and through them to modules, operations and source lines.

The unit is the *origin*: module, operation name, forward or backward, and source stack. Each moment of an
execution is charged to one of the spans active in it (`exposure`): computing instructions first, then data
movement, then control instructions, then the operation around them, then the execution as a whole. So the
charges of a profile add up to its device time: the sum of its execution spans. What framework operations were
fused into is charged to all of them, each by its share (table FrameworkShare). Of the physical cores of a
logical one the first is charged (`logical_cores`).

Of a range of a profile (`Profile.slice`) the charges add up to the device time within it: what reaches
beyond is
cut. The same time is summed up by HLO opcode and by engine too, so that these add up as well.

A profile is taken in stretches of time, each with at most about `STRETCH_ROWS` spans, so that memory does not
grow with its length. A span that reaches beyond its stretch is cut there, and its rest goes to the next one.
Of a long run of compiled graphs, one execution of each stands for all of them (`repeats`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, TypeVar

from neuron_profile.analysis.time.core_charges import Core, charge_core, core_parts, expose, index_core
from neuron_profile.analysis.time.core_spans import ENGINES, EXECUTION_EVENT
from neuron_profile.analysis.time.logical_cores import first_cores
from neuron_profile.analysis.time.numbering import (
    HeldOrigins,
    Numbering,
    Opcodes,
    Origin,
    Sums,
    count_origins,
)
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

MOST_HELD = 1 << 18
"""Operations of a profile that are numbered once and held in memory, some 200 bytes each."""
MOST_INDEXED = 1 << 22
"""As many where the profile stays open and each of its ranges may be asked for."""
_ORIGINS = "origins"
Key = TypeVar("Key")
_CORES = f"""
SELECT coalesce(process_idx, 0) AS process, coalesce(nc_idx, 0) AS core
FROM SystemProfileEvents WHERE name = '{EXECUTION_EVENT}'
UNION SELECT coalesce(process_idx, 0), coalesce(pcore_idx, 0) FROM FrameworkInstruction
UNION SELECT coalesce(process_idx, 0), coalesce(pcore_idx, 0) FROM Instruction
ORDER BY ALL
"""


@frozen
class Charge:
    """Device time of all operations of one origin, and how many there were."""

    origin: Origin
    device_ns: float
    count: int


@frozen
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


def charge_device_time(
    profile: Profile, process: int | None = None, core: int | None = None, hlo: str = "hlo_opcode"
) -> Charges:
    """Charge all device time of a profile, or of a range of it. O(n log n) in its instructions and transfers.

    Args:
        process: Only what this process of the profile ran.
        core: Only what ran on the NeuronCore of this number.
        hlo: Column of HloInstruction that `Charges.hlo` is summed up by.
    """
    key = ("charges", process, core, hlo)
    return profile.kept(key, lambda: _charges(profile, process, core, hlo))


def _charges(profile: Profile, process: int | None, core: int | None, hlo: str) -> Charges:
    cores = [each for each in _cores(profile) if process in (None, each[0]) and core in (None, each[1])]
    if not _is_held(profile.whole, MOST_HELD):
        return _charged_in_parts(profile, cores, hlo)
    to = _numbering(profile.whole, hlo)
    sums = Sums.empty(to)
    for place in cores:
        charge_core(profile, place, to, sums)
    totals = Totals()
    totals.add(to, sums)
    return totals.charges(_origins(profile.whole).counts(profile.range_ns))


def _charged_in_parts(profile: Profile, cores: Sequence[Core], hlo: str) -> Charges:
    """The charges of a profile with too many operations to number all: each part's are numbered anew."""
    totals = Totals()
    for core in cores:
        for tiers, times in core_parts(profile, None, core):
            to = Numbering.of_spans(profile.whole, tiers, hlo)
            sums = Sums.empty(to)
            expose(tiers, to, sums)
            totals.add(to, sums, times)
    return totals.charges(count_origins(profile))


def _no_time() -> defaultdict[Any, float]:
    return defaultdict(float)


def _add(total: defaultdict[Key, float], named: Iterable[tuple[Key, float]]) -> None:
    for name, time_ns in named:
        total[name] += time_ns


@dataclass
class Totals:
    """Charged time in ns of parts that are each numbered in their own way."""

    origin: defaultdict[Origin, float] = field(default_factory=_no_time)
    hlo: defaultdict[str, float] = field(default_factory=_no_time)
    engine: defaultdict[str, float] = field(default_factory=_no_time)
    unattributed_ns: float = 0.0

    def add(self, to: Numbering, sums: Sums, times: int = 1) -> None:
        """Add the time of a part that runs so many times."""
        exposed = (to.origins.divided(sums.origin) * times).tolist()
        self.unattributed_ns += exposed.pop()
        _add(self.origin, zip(to.origins.rows, exposed))
        _add(self.hlo, to.opcodes.named(sums.opcode * times).items())
        _add(self.engine, zip(ENGINES, (sums.engine * times).tolist()))

    def charges(self, counts: Mapping[Origin, int]) -> Charges:
        """All of it.

        Args:
            counts: Operations of each origin.
        """
        charges = [
            Charge(origin, self.origin[origin], counts.get(origin, 0))
            for origin in sorted({*self.origin, *counts}, key=astuple)
            if counts.get(origin) or self.origin[origin]
        ]
        charges.sort(key=lambda charge: -charge.device_ns)
        engines = {engine: self.engine[engine] for engine in ENGINES if self.engine[engine]}
        hlo = {name: self.hlo[name] for name in sorted(self.hlo)}
        return Charges(tuple(charges), self.unattributed_ns, hlo, engines)


def index_charges(profile: Profile, hlo: str = "hlo_opcode") -> None:
    """Sum up a profile once, so that long ranges of it are charged as fast as short ones.

    O(n log n) in its instructions and transfers. Of a profile with more than `MOST_INDEXED` operations
    nothing is kept.

    Args:
        profile: A whole one.
        hlo: As in `charge_device_time`.
    """
    if _is_held(profile, MOST_INDEXED):
        to = _numbering(profile, hlo)
        for place in _cores(profile):
            index_core(profile, place, to)


def _numbering(held: Profile, hlo: str) -> Numbering:
    return Numbering(_origins(held), held.kept(("opcodes", hlo), lambda: Opcodes.of(held, hlo)))


def _origins(held: Profile) -> HeldOrigins:
    return held.kept(_ORIGINS, lambda: HeldOrigins.of_all(held))


def _is_held(whole: Profile, most: int) -> bool:
    """Whether the operations of a whole profile are held in memory, or few enough to be."""
    rows = whole.tables()
    few = rows.get("FrameworkInstruction", 0) + rows.get("HloInstruction", 0) <= most
    return few or whole.known(_ORIGINS) is not None


def _cores(profile: Profile) -> list[Core]:
    """Every (process_idx, core index) that ran something and stands for a logical core."""
    whole = profile.whole
    rows = whole.kept("cores", lambda: whole.query(_CORES)).to_pylist()
    return first_cores(whole, ((row["process"], row["core"]) for row in rows))
