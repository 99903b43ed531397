"""What of a NeuronCore time is charged to: instructions, transfers, operations, executions, by priority."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_profile.analysis.time.exposure import Spans
from neuron_tools.profile.reader import Profile

Ints = npt.NDArray[np.int64]
NO_OPERATION = -1
EXECUTION_EVENT = "nc_exec_running"

# Instructions that order others and do no work of their own: the set-up opcodes that the published metric
# total_exec_time leaves out, and those that start a DMA.
CONTROL_OPCODES = (
    "NOP", "SET_ORDERING_MODE", "EVENT_SEMAPHORE", "EVENT_SEMAPHORE_RANGE_CLEAR", "NOTIFY", "COMPARE_BRANCH",
    "DRAIN", "MODIFY_POOL_CONFIG", "DMA_TRIGGER", "PSEUDO_DMA_TRIGGER",
)  # fmt: skip

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
    f"SELECT start_ts, end_ts, raw_framework_id AS owner, raw_hlo_id AS hlo, {_IS_CONTROL} AS control, "
    f"CASE lower(engine) {_ENGINE_CODE} ELSE {OTHER} END AS engine FROM Instruction "
    f"WHERE {_WITHIN} AND "
)
_TRANSFERS = (
    "SELECT start_ts, end_ts, raw_framework_id AS owner, raw_hlo_id AS hlo, trigger "
    f"FROM DmaPacketAggregated WHERE {_WITHIN} AND "
)
# Operations of what started the transfers that do not name their own.
_TRIGGERS = """
SELECT instruction.id, min(instruction.raw_framework_id) AS owner
FROM (SELECT DISTINCT trigger FROM DmaPacketAggregated WHERE raw_framework_id IS NULL) dma
JOIN Instruction instruction ON instruction.id = dma.trigger
WHERE instruction.raw_framework_id IS NOT NULL GROUP BY instruction.id ORDER BY instruction.id
"""
_UNOWNED = "SELECT 1 FROM DmaPacketAggregated WHERE raw_framework_id IS NULL LIMIT 1"
_OPERATIONS = "SELECT start_ts, end_ts, id AS owner FROM FrameworkInstruction"
_EXECUTIONS = (
    f"SELECT start_ts, end_ts, NULL AS owner FROM SystemProfileEvents WHERE name = '{EXECUTION_EVENT}'"
)


@dataclass(frozen=True, slots=True)
class Owned:
    """Spans, the framework operation (id) and HLO operation (id) that each belongs to, and its place in
    `ENGINES`."""

    spans: Spans
    owner: Ints
    hlo: Ints
    engine: Ints

    def __len__(self) -> int:
        return len(self.owner)

    def chosen(self, mask: npt.NDArray[np.bool_]) -> Owned:
        """Some of the spans."""
        return Owned(
            Spans(self.spans.start_ns[mask], self.spans.end_ns[mask]), self.owner[mask], self.hlo[mask],
            self.engine[mask],
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
    """What of a NeuronCore is few enough to be held at once.

    Attributes:
        triggers: Instructions that start transfers which name no operation, ascending.
        trigger_owners: The operation of each.
    """

    operations: Owned
    executions: Owned
    triggers: Ints
    trigger_owners: Ints

    @classmethod
    def of(cls, profile: Profile, core: tuple[int, int]) -> CoreSpans:
        """Operations and executions of a NeuronCore: (process_idx, number)."""
        operations = owned_spans(
            profile.query(f"{_OPERATIONS} WHERE {CORE.format(core='pcore_idx')}", core), OPERATION
        )
        executions = owned_spans(
            profile.query(f"{_EXECUTIONS} AND {CORE.format(core='nc_idx')} ORDER BY start_ts", core),
            EXECUTION,
        )
        triggers, owners = profile.kept("triggers", lambda: _triggers(profile))
        return cls(operations, _with_only_operation(executions.spans, operations), triggers, owners)

    def starting(self, profile: Profile, core: tuple[int, int], begin: int, end: int) -> list[Owned]:
        """All tiers' spans that start in a stretch, by falling priority."""
        return [
            *self.loaded(profile, core, begin, end),
            self.operations.chosen(_starting(self.operations, begin, end)),
            self.executions.chosen(_starting(self.executions, begin, end)),
        ]

    def loaded(self, profile: Profile, core: tuple[int, int], begin: int, end: int) -> list[Owned]:
        """Computing instructions, transfers and control instructions that start in a stretch."""
        here = CORE.format(core="pcore_idx")
        instructions = profile.query(f"{_INSTRUCTIONS} {here}", [begin, end, *core])
        control = instructions["control"].fill_null(False).to_numpy().astype(bool)
        every = owned_spans(instructions, OTHER)
        ordering = every.chosen(control)
        moved = self._transfers(profile.query(f"{_TRANSFERS} {here}", [begin, end, *core]))
        ordering = replace(ordering, engine=np.full(len(ordering), CONTROL, np.int64))
        return [every.chosen(~control), moved, ordering]

    def _transfers(self, rows: pa.Table) -> Owned:
        """Transfers, those that name no operation with that of what started them."""
        moved = owned_spans(rows, DMA)
        if not len(self.triggers) or not len(moved):
            return moved
        wanted = rows["trigger"].cast(pa.int64()).fill_null(NO_OPERATION).to_numpy()
        place = np.minimum(np.searchsorted(self.triggers, wanted), len(self.triggers) - 1)
        is_known = (moved.owner == NO_OPERATION) & (self.triggers[place] == wanted)
        return replace(moved, owner=np.where(is_known, self.trigger_owners[place], moved.owner))

    def overlapping(
        self, profile: Profile, core: tuple[int, int], begin: int, end: int, longest_ns: int
    ) -> list[Owned]:
        """All tiers' spans that reach into a range, cut to it.

        Args:
            longest_ns: Length of the longest instruction or transfer.
        """
        tiers = [*self.loaded(profile, core, begin - longest_ns, end), self.operations, self.executions]
        return [tier.cut(begin, end) for tier in tiers]


def is_unowned(profile: Profile) -> bool:
    """Whether transfers of a profile name no operation, so that what started them is looked up."""
    found: int = profile.query(_UNOWNED).num_rows
    return found > 0


def _triggers(profile: Profile) -> tuple[Ints, Ints]:
    if not profile.kept("unowned", lambda: is_unowned(profile)):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    rows = profile.query(_TRIGGERS)
    return integers(rows, "id"), integers(rows, "owner")


def _starting(owned: Owned, begin: int, end: int) -> npt.NDArray[np.bool_]:
    inside: npt.NDArray[np.bool_] = (owned.spans.start_ns >= begin) & (owned.spans.start_ns < end)
    return inside


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
