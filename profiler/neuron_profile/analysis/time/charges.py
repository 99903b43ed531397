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

from collections.abc import Mapping
from dataclasses import field

from neuron_profile.analysis.time.core_charges import charge_core, index_core
from neuron_profile.analysis.time.core_spans import ENGINES, EXECUTION_EVENT
from neuron_profile.analysis.time.logical_cores import first_cores
from neuron_profile.analysis.time.numbering import Numbering, Opcodes, Origin, Origins, Sums
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

MOST_HELD = 1 << 22
"""Operations of a profile that are held in memory, some 200 bytes each."""
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
    held = _held(profile)
    to = _numbering(held, hlo)
    origins, sums = to.origins, Sums.empty(to)
    for place in _cores(held):
        if process in (None, place[0]) and core in (None, place[1]):
            charge_core(profile, held, place, to, sums)
    exposed = origins.divided(sums.origin)
    charges = [
        Charge(origins.rows[code], float(exposed[code]), int(n))
        for code, n in enumerate(origins.counts(profile.range_ns))
        if n or exposed[code]
    ]
    charges.sort(key=lambda charge: -charge.device_ns)
    engines = {engine: float(time) for engine, time in zip(ENGINES, sums.engine) if time}
    return Charges(tuple(charges), float(exposed[-1]), to.opcodes.named(sums.opcode), engines)


def index_charges(profile: Profile, hlo: str = "hlo_opcode") -> None:
    """Sum up a profile once, so that long ranges of it are charged as fast as short ones.

    O(n log n) in its instructions and transfers. Of a profile with more than `MOST_HELD` operations nothing
    is kept.

    Args:
        profile: A whole one.
        hlo: As in `charge_device_time`.
    """
    if _is_held(profile):
        to = _numbering(profile, hlo)
        for place in _cores(profile):
            index_core(profile, place, to)


def _numbering(held: Profile, hlo: str) -> Numbering:
    origins = held.kept("origins", lambda: Origins.of(held))
    return Numbering(origins, held.kept(("opcodes", hlo), lambda: Opcodes.of(held, hlo)))


def _held(profile: Profile) -> Profile:
    """Whose operations are numbered and held: those of the whole profile, so that each of its ranges need not
    do it again; of one with too many, those of the range.
    """
    return profile.whole if _is_held(profile.whole) else profile


def _is_held(whole: Profile) -> bool:
    """Whether the operations of a whole profile are few enough to be held."""
    rows = whole.tables()
    return rows.get("FrameworkInstruction", 0) + rows.get("HloInstruction", 0) <= MOST_HELD


def _cores(held: Profile) -> list[tuple[int, int]]:
    """Every (process_idx, core index) that ran something and stands for a logical core."""
    rows = held.kept("cores", lambda: held.query(_CORES)).to_pylist()
    return first_cores(held, ((row["process"], row["core"]) for row in rows))
