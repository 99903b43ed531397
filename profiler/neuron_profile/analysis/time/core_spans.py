"""What of a NeuronCore time is charged to: instructions, transfers, operations, executions, by priority."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_profile.analysis.time.chosen_rows import NO_ID, chosen_rows
from neuron_profile.analysis.time.logical_cores import physical_cores
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.exposure import CONTROL_OPCODES, Spans
from neuron_tools.profile.reader import Profile

NO_OPERATION = NO_ID
EXECUTION_EVENT = "nc_exec_running"

COMPUTING = ("tensor", "vector", "scalar", "gpsimd", "sync")
ENGINES = (*COMPUTING, "other", "dma", "control", "operation", "execution")
"""What time is charged to by engine: an engine that computes, a transfer that nothing hides, instructions
that only
order others, and what lies between the instructions of an operation and of an execution."""
OTHER, DMA, CONTROL, OPERATION, EXECUTION = range(len(COMPUTING), len(ENGINES))


CORE = "coalesce(process_idx, 0) = ? AND coalesce({core}, 0) = ?"
_IS_CONTROL = f"opcode IN ({', '.join(repr(opcode) for opcode in CONTROL_OPCODES)})"
_WITHIN = "start_ts >= ? AND start_ts < ?"
_ENGINE_CODE = " ".join(f"WHEN '{engine}' THEN {code}" for code, engine in enumerate(COMPUTING))
_INSTRUCTIONS = (
    "SELECT {more}start_ts, end_ts, raw_framework_id AS owner, raw_hlo_id AS hlo, "
    f"{_IS_CONTROL} AS control, "
    f"CASE lower(engine) {_ENGINE_CODE} ELSE {OTHER} END AS engine FROM Instruction "
    f"WHERE {_WITHIN} AND "
)
_TRANSFERS = (
    "SELECT start_ts, end_ts, raw_framework_id AS owner, raw_hlo_id AS hlo, trigger "
    f"FROM DmaPacketAggregated WHERE {_WITHIN} AND "
)
_STRETCHES = (
    "SELECT charged_start_ts AS start_ts, charged_end_ts AS end_ts, raw_framework_id AS owner, "
    "raw_hlo_id AS hlo FROM HloInstruction WHERE charged_start_ts < charged_end_ts "
    "AND charged_start_ts >= ? AND charged_start_ts < ? AND charged_end_ts > ? AND charged_start_ts < ? AND "
    f"{CORE.format(core='pcore_idx')}"
)
_OWNERS = (
    "SELECT id, raw_framework_id AS owner FROM Instruction "
    "WHERE {chosen} AND raw_framework_id IS NOT NULL ORDER BY ALL"
)
_UNOWNED = "SELECT 1 FROM DmaPacketAggregated WHERE raw_framework_id IS NULL LIMIT 1"
_OPERATIONS = (
    "SELECT start_ts, end_ts, id AS owner FROM FrameworkInstruction "
    f"WHERE {_WITHIN} AND coalesce(process_idx, 0) = ? AND coalesce(pcore_idx, 0) IN (SELECT unnest(?))"
)
_EXECUTIONS = (
    "SELECT start_ts, end_ts, NULL AS owner FROM SystemProfileEvents "
    f"WHERE name = '{EXECUTION_EVENT}' AND {_WITHIN} AND {CORE.format(core='nc_idx')} ORDER BY start_ts"
)
EARLIEST, LATEST = -(1 << 62), 1 << 62


@frozen
class Owned:
    """Spans, the framework operation (id) and HLO operation (id) that each belongs to, and its place in
    `ENGINES`."""

    spans: Spans
    owner: Ints
    hlo: Ints
    engine: Ints

    def __len__(self) -> int:
        return len(self.owner)

    def in_order(self) -> Owned:
        """The same by ascending start."""
        start = self.spans.start_ns
        return self if (start[1:] >= start[:-1]).all() else self.chosen(np.argsort(start, kind="stable"))

    def chosen(self, mask: npt.NDArray[np.bool_] | Ints) -> Owned:
        """Some of the spans: those of a mask, or of places."""
        return Owned(
            Spans(self.spans.start_ns[mask], self.spans.end_ns[mask]), self.owner[mask], self.hlo[mask],
            self.engine[mask],
        )  # fmt: skip

    def starting(self, begin: int, end: int) -> Owned:
        """Of spans in order those that start in a stretch of time."""
        low, high = np.searchsorted(self.spans.start_ns, [begin, end])
        return Owned(
            Spans(self.spans.start_ns[low:high], self.spans.end_ns[low:high]), self.owner[low:high],
            self.hlo[low:high], self.engine[low:high],
        )  # fmt: skip

    def cut(self, begin: int, end: int) -> Owned:
        """What of the spans lies in a stretch of time; those without length are left out."""
        starts, ends = np.maximum(self.spans.start_ns, begin), np.minimum(self.spans.end_ns, end)
        inside = starts < ends
        return Owned(
            Spans(starts[inside], ends[inside]), self.owner[inside], self.hlo[inside], self.engine[inside]
        )


@dataclass(frozen=True)
class CoreSpans:
    """Operations and executions of a NeuronCore: of a profile that has few all, else those of a stretch.

    Attributes:
        operations, executions: In order.
        beside: Operations of the logical core's other physical cores, in order: what this one waits for when
            it has none.
        is_unowned: Whether there are transfers that name no operation: theirs is that of what started them.
    """

    operations: Owned
    beside: Owned
    executions: Owned
    is_unowned: bool

    @classmethod
    def of(
        cls, profile: Profile, core: tuple[int, int], begin: int = EARLIEST, end: int = LATEST
    ) -> CoreSpans:
        """Those of a NeuronCore, (process_idx, number), that start in a stretch of time."""
        process, number = core
        size = physical_cores(profile)
        first = number - number % size
        operations = _operations(profile, process, [number], begin, end)
        others = [n for n in range(first, first + size) if n != number]
        beside = _operations(profile, process, others, begin, end)
        executions = owned_spans(profile.query(_EXECUTIONS, [begin, end, *core]), EXECUTION)
        within = operations
        if len(executions) and (profile.range_ns is not None or (begin, end) != (EARLIEST, LATEST)):
            bounds = int(executions.spans.start_ns.min()), int(executions.spans.end_ns.max())
            within = _operations(profile.whole, process, [number], *bounds)
        unowned = profile.whole.kept("unowned", lambda: is_unowned(profile.whole))
        executed = _with_only_operation(executions.spans, within)
        return cls(operations.in_order(), beside.in_order(), executed.in_order(), unowned)

    def starting(self, profile: Profile, core: tuple[int, int], begin: int, end: int) -> list[Owned]:
        """All tiers' spans that start in a stretch, by falling priority."""
        return [
            *self.loaded(profile, core, begin, end),
            self.operations.starting(begin, end),
            self.beside.starting(begin, end),
            self.executions.starting(begin, end),
        ]

    def loaded(self, profile: Profile, core: tuple[int, int], begin: int, end: int) -> list[Owned]:
        """Computing instructions, transfers and control instructions that start in a stretch, in order.

        Of a profile without instructions the stretches that its operations are charged with.
        """
        if not _has_instructions(profile):
            return [_charged(profile, core, begin, end)]
        here = CORE.format(core="pcore_idx")
        query = _INSTRUCTIONS.format(more="id, " if self.is_unowned else "")
        instructions = profile.query(f"{query} {here}", [begin, end, *core])
        control = instructions["control"].fill_null(False).to_numpy().astype(bool)
        every = owned_spans(instructions, OTHER)
        ordering = every.chosen(control)
        rows = profile.query(f"{_TRANSFERS} {here}", [begin, end, *core])
        moved = owned_spans(rows, DMA)
        if self.is_unowned:
            moved = _with_owners(profile.whole, moved, rows, instructions)
        ordering = replace(ordering, engine=np.full(len(ordering), CONTROL, np.int64))
        return [tier.in_order() for tier in (every.chosen(~control), moved, ordering)]

    def overlapping(
        self, profile: Profile, core: tuple[int, int], begin: int, end: int, longest_ns: int
    ) -> list[Owned]:
        """All tiers' spans that reach into a range, cut to it.

        Args:
            longest_ns: Length of the longest instruction or transfer.
        """
        if _has_instructions(profile):
            loaded = self.loaded(profile, core, begin - longest_ns, end)
        else:
            loaded = self.loaded(profile.slice(begin, end), core, EARLIEST, LATEST)
        held = (self.operations, self.beside, self.executions)
        return [tier.cut(begin, end) for tier in (*loaded, *held)]


def _has_instructions(profile: Profile) -> bool:
    return bool(profile.whole.tables().get("Instruction"))


def _charged(profile: Profile, core: tuple[int, int], begin: int, end: int) -> Owned:
    """The stretches of HLO operations that start between two moments and reach into the profile's range.

    They are read from the whole profile: one may lie beside the interval of its operation.
    """
    low, high = profile.range_ns or (EARLIEST, LATEST)
    rows = profile.whole.query(_STRETCHES, [begin, end, low, high, *core])
    return owned_spans(rows, OPERATION).in_order()


def _operations(profile: Profile, process: int, cores: list[int], begin: int, end: int) -> Owned:
    """Operations of some physical cores of a process that start in a stretch."""
    return owned_spans(profile.query(_OPERATIONS, [begin, end, process, cores]), OPERATION)


def is_unowned(profile: Profile) -> bool:
    """Whether transfers of a profile name no operation, so that what started them is looked up."""
    found: int = profile.query(_UNOWNED).num_rows
    return found > 0


def _with_owners(whole: Profile, moved: Owned, rows: pa.Table, instructions: pa.Table) -> Owned:
    """Transfers, those that name no operation with that of what started them: mostly one of the instructions
    at hand, the others are looked up.
    """
    unnamed = np.flatnonzero(moved.owner == NO_OPERATION)
    wanted = rows["trigger"].cast(pa.int64()).fill_null(NO_OPERATION).to_numpy()[unnamed]
    known = instructions.select(["id", "owner"]).sort_by("id")
    found, is_known = _looked_up(known, wanted)
    elsewhere = ~is_known & (wanted != NO_OPERATION)
    if elsewhere.any():
        owners = chosen_rows(whole, "Instruction", _OWNERS, "id", wanted[elsewhere])
        found[elsewhere] = _looked_up(owners, wanted[elsewhere])[0]
    owner = moved.owner.copy()
    owner[unnamed] = found
    return replace(moved, owner=owner)


def _looked_up(known: pa.Table, wanted: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Operations of some instructions, and which of them are there at all.

    Args:
        known: `id`, ascending, and `owner` of instructions; the least owner of an id first.
    """
    ids = integers(known, "id")
    if not len(ids):
        return np.full(len(wanted), NO_OPERATION, np.int64), np.zeros(len(wanted), np.bool_)
    place = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    owners = known["owner"].cast(pa.int64()).fill_null(NO_OPERATION).to_numpy()
    is_there = ids[place] == wanted
    return np.where(is_there, owners[place], NO_OPERATION), is_there


def _with_only_operation(executions: Spans, operations: Owned) -> Owned:
    """Each execution with the operation that is alone in it, as in eager mode; else without an owner."""
    order = np.argsort(operations.spans.start_ns, kind="stable")
    starts = operations.spans.start_ns[order]
    first = np.searchsorted(starts, executions.start_ns)
    alone = np.searchsorted(starts, executions.end_ns) - first == 1
    owner = np.full(len(executions.start_ns), NO_OPERATION, np.int64)
    owner[alone] = operations.owner[order][first[alone]]
    none, engine = np.full(len(owner), NO_OPERATION, np.int64), np.full(len(owner), EXECUTION, np.int64)
    return Owned(executions, owner, none, engine)


def owned_spans(rows: pa.Table, engine: int) -> Owned:
    """Spans as queried; those without a column `engine` are all of one."""
    owner = rows["owner"].cast(pa.int64()).fill_null(NO_OPERATION)
    spans = Spans(integers(rows, "start_ts"), integers(rows, "end_ts"))
    hlo = np.full(len(owner), NO_OPERATION, np.int64)
    if "hlo" in rows.column_names:
        hlo = rows["hlo"].cast(pa.int64()).fill_null(NO_OPERATION).to_numpy()
    engines = (
        integers(rows, "engine") if "engine" in rows.column_names else np.full(len(owner), engine, np.int64)
    )
    return Owned(spans, owner.to_numpy(), hlo, engines)


def integers(rows: pa.Table, column: str) -> Ints:
    """A column without nulls as int64."""
    values: Ints = rows[column].to_numpy().astype(np.int64, copy=False)
    return values
