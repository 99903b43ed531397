"""Charges device time to framework operations, and through them to modules, operations and source lines.

The unit is the *origin*: module, operation name, forward or backward, and source stack. Each moment of an
execution is charged to one of the spans active in it (`exposure`): computing instructions first, then data
movement, then control instructions, then the operation around them, then the execution as a whole. So the
charges of a profile add up to its device time: the sum of its execution spans.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_profile.analysis.exposure import Spans, exposed_ns
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

_CORES = f"""
SELECT coalesce(process_idx, 0) AS process, coalesce(nc_idx, 0) AS core
FROM SystemProfileEvents WHERE name = '{EXECUTION_EVENT}'
UNION SELECT coalesce(process_idx, 0), coalesce(pcore_idx, 0) FROM FrameworkInstruction
ORDER BY ALL
"""
_CORE = "coalesce(process_idx, 0) = ? AND coalesce({core}, 0) = ?"
_IS_CONTROL = f"opcode IN ({', '.join(repr(opcode) for opcode in CONTROL_OPCODES)})"
_INSTRUCTIONS = (
    f"SELECT start_ts, end_ts, raw_framework_id AS owner, {_IS_CONTROL} AS control FROM Instruction"
)
_TRANSFERS = """
SELECT dma.start_ts, dma.end_ts, coalesce(dma.raw_framework_id, instruction.raw_framework_id) AS owner
FROM (SELECT * FROM DmaPacketAggregated WHERE {core}) dma
LEFT JOIN Instruction instruction ON instruction.id = dma.trigger
"""
_OPERATIONS = "SELECT start_ts, end_ts, id AS owner FROM FrameworkInstruction"
_EXECUTIONS = (
    f"SELECT start_ts, end_ts, NULL AS owner FROM SystemProfileEvents WHERE name = '{EXECUTION_EVENT}'"
)
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
    """The device time of a profile by origin; `unattributed_ns` belongs to no operation."""

    charges: tuple[Charge, ...]
    unattributed_ns: float

    @property
    def device_ns(self) -> float:
        """All device time."""
        return sum(charge.device_ns for charge in self.charges) + self.unattributed_ns


@dataclass(frozen=True, slots=True)
class _Owned:
    """Spans, and the framework operation (id) that each belongs to."""

    spans: Spans
    owner: Ints


def charge_device_time(profile: Profile) -> Charges:
    """Charge all device time of a profile. O(n log n) in its instructions and transfers."""
    owners, exposed = [np.zeros(0, np.int64)], [np.zeros(0)]
    for process_idx, core_idx in _cores(profile):
        tiers = _tiers(profile, (process_idx, core_idx))
        for tier, times in zip(tiers, exposed_ns([tier.spans for tier in tiers])):
            owners.append(tier.owner)
            exposed.append(times)
    return _collect(profile, np.concatenate(owners), np.concatenate(exposed))


def _collect(profile: Profile, owners: Ints, exposed: npt.NDArray[np.float64]) -> Charges:
    """Sum the exposed time of all spans by the origin of their owner."""
    numbered = profile.query(
        f"{_ORIGINS} SELECT id, code FROM operations JOIN origins USING ({_ORIGIN_NAMES})"
    )
    rows = profile.query(f"{_ORIGINS} SELECT {_ORIGIN_NAMES} FROM origins ORDER BY code").to_pylist()
    ids, codes = _ints(numbered, "id"), _ints(numbered, "code")
    order = np.argsort(ids)
    ids, codes = ids[order], codes[order]
    known = np.isin(owners, ids)
    code = codes[np.searchsorted(ids, owners[known])]
    device_ns = np.bincount(code, weights=exposed[known], minlength=len(rows))
    counts = np.bincount(codes, minlength=len(rows))
    charges = [Charge(Origin(**row), float(ns), int(n)) for row, ns, n in zip(rows, device_ns, counts)]
    charges.sort(key=lambda charge: -charge.device_ns)
    return Charges(tuple(charges), float(exposed[~known].sum()))


def _cores(profile: Profile) -> list[tuple[int, int]]:
    """Every (process_idx, core index) that ran something."""
    rows = profile.query(_CORES).to_pylist()
    return [(row["process"], row["core"]) for row in rows]


def _tiers(profile: Profile, core: tuple[int, int]) -> list[_Owned]:
    """One NeuronCore's spans by falling priority."""
    here = _CORE.format(core="pcore_idx")
    instructions = profile.query(f"{_INSTRUCTIONS} WHERE {here}", core)
    control = instructions["control"].to_numpy(zero_copy_only=False).astype(bool)
    every = _owned(instructions)
    operations = _owned(profile.query(f"{_OPERATIONS} WHERE {here}", core))
    executions = _owned(
        profile.query(f"{_EXECUTIONS} AND {_CORE.format(core='nc_idx')} ORDER BY start_ts", core)
    )
    return [
        _chosen(every, ~control),
        _owned(profile.query(_TRANSFERS.format(core=here), core)),
        _chosen(every, control),
        operations,
        _with_only_operation(executions.spans, operations),
    ]


def _with_only_operation(executions: Spans, operations: _Owned) -> _Owned:
    """Each execution with the operation that is alone in it, as in eager mode; else without an owner."""
    order = np.argsort(operations.spans.start_ns, kind="stable")
    starts = operations.spans.start_ns[order]
    first = np.searchsorted(starts, executions.start_ns)
    alone = np.searchsorted(starts, executions.end_ns) - first == 1
    owner = np.full(len(executions.start_ns), NO_OPERATION, np.int64)
    owner[alone] = operations.owner[order][first[alone]]
    return _Owned(executions, owner)


def _owned(rows: pa.Table) -> _Owned:
    owner = rows["owner"].cast(pa.int64()).fill_null(NO_OPERATION)
    spans = Spans(_ints(rows, "start_ts"), _ints(rows, "end_ts"))
    return _Owned(spans, owner.to_numpy())


def _chosen(owned: _Owned, chosen: npt.NDArray[np.bool_]) -> _Owned:
    spans = Spans(owned.spans.start_ns[chosen], owned.spans.end_ns[chosen])
    return _Owned(spans, owned.owner[chosen])


def _ints(rows: pa.Table, column: str) -> Ints:
    values: Ints = rows[column].to_numpy().astype(np.int64, copy=False)
    return values
