"""Charges device time to source stacks, down to the lines inside kernels.

`charges` charges operations; a kernel is one operation there, called at one line. Here the time of a kernel
is divided among the stacks of its own instructions and transfers, by the same priorities (`exposure`); what
none of them exposes stays at the call. Everything else is as `charges` has it (fused operations by share),
so the sum is the device time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from neuron_profile.analysis.time.charges import Charge, charge_device_time
from neuron_profile.analysis.time.logical_cores import of_first_cores
from neuron_tools.frozen import frozen
from neuron_tools.profile.exposure import CONTROL_OPCODES, Spans, exposed_ns
from neuron_tools.profile.reader import Profile

NO_STACK = ""

_LEAF = "split_part(coalesce({table}.stack_frame_ids, ''), ',', 1)"
_OWN, _CALLED = _LEAF.format(table="instruction"), _LEAF.format(table="operation")
_IS_CONTROL = f"opcode IN ({', '.join(repr(opcode) for opcode in CONTROL_OPCODES)})"
# Instructions of kernels: outside them an instruction's stack is that of its operation.
_KERNELS = f"""
WITH joined AS (
    SELECT instruction.id, instruction.start_ts, instruction.end_ts, {_IS_CONTROL} AS control,
        coalesce(instruction.process_idx, 0) AS process, coalesce(instruction.pcore_idx, 0) AS core,
        {_OWN} AS own, {_CALLED} AS called, operation.id AS operation_id,
        coalesce(operation.framework_name, '') AS operation,
        coalesce(operation.is_backward, false) AS backward
    FROM Instruction instruction
    JOIN FrameworkInstruction operation ON operation.id = instruction.raw_framework_id
), kernels AS (
    SELECT DISTINCT operation_id FROM joined WHERE own <> '' AND own <> called
)
SELECT * REPLACE (CASE WHEN own = '' THEN called ELSE own END AS own)
FROM joined WHERE operation_id IN (SELECT operation_id FROM kernels) AND {{chosen}}
"""
_TRANSFERS = f"""
SELECT dma.start_ts, dma.end_ts, kernel.process, kernel.core, kernel.own, kernel.called, kernel.operation,
    kernel.backward
FROM DmaPacketAggregated dma JOIN ({_KERNELS}) kernel ON kernel.id = dma.trigger
"""
_KEYS = ("operation", "called", "backward", "own")


@frozen
class StackPair:
    """Where work came from.

    Attributes:
        own: Id of the innermost frame of the instruction's own stack; outside kernels that of the operation.
        operation: The same of the framework operation that it belongs to; "" = it has none.
        backward: Whether the operation belongs to the backward pass.
    """

    own: str
    operation: str
    backward: bool


_Kernel = tuple[str, str, bool]
"""Name, stack and pass of the operations that call a kernel."""


def charge_stacks(profile: Profile) -> dict[StackPair, float]:
    """Device time in ns of each pair of stacks; the sum is the profile's device time."""
    charges = charge_device_time(profile)
    inside = _inside_kernels(profile)
    charged: dict[StackPair, float] = defaultdict(float)
    for charge in charges.charges:
        for own, device_ns in _divided(charge, inside).items():
            charged[StackPair(own, charge.origin.stack, charge.origin.backward)] += device_ns
    if charges.unattributed_ns:
        charged[StackPair(NO_STACK, NO_STACK, False)] += charges.unattributed_ns
    return dict(charged)


def stack_pair(own: str | None, operation: str | None, backward: bool | None) -> StackPair:
    """The pair of two innermost frames, either of which may be missing."""
    return StackPair(own or operation or NO_STACK, operation or NO_STACK, bool(backward))


def _divided(charge: Charge, inside: Mapping[_Kernel, Mapping[str, float]]) -> dict[str, float]:
    """The time of one charge by own stack."""
    origin = charge.origin
    exposed = inside.get((origin.operation, origin.stack, origin.backward), {})
    total = sum(exposed.values())
    scale = min(1.0, charge.device_ns / total) if total else 0.0
    divided = {own: device_ns * scale for own, device_ns in exposed.items()}
    divided[origin.stack] = divided.get(origin.stack, 0.0) + charge.device_ns - total * scale
    return divided


def _inside_kernels(profile: Profile) -> dict[_Kernel, dict[str, float]]:
    """Exposed time of the instructions and transfers of each kernel by their own stack."""
    chosen = of_first_cores(profile, "core")
    instructions, transfers = (profile.query(text.format(chosen=chosen)) for text in (_KERNELS, _TRANSFERS))
    control = instructions["control"].fill_null(False).to_numpy().astype(bool)
    tiers = [instructions.filter(pa.array(~control)), transfers, instructions.filter(pa.array(control))]
    found: dict[_Kernel, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for core in {(row["process"], row["core"]) for row in _distinct(instructions, ("process", "core"))}:
        here = [_on_core(tier, core) for tier in tiers]
        for rows, exposed in zip(here, exposed_ns([_spans(rows) for rows in here])):
            sums = rows.select(_KEYS).append_column("device_ns", pa.array(exposed))
            for row in sums.group_by(_KEYS).aggregate([("device_ns", "sum")]).to_pylist():
                kernel = (row["operation"], row["called"], row["backward"])
                found[kernel][row["own"]] += row["device_ns_sum"]
    return found


def _distinct(rows: pa.Table, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    distinct: list[dict[str, Any]] = rows.group_by(columns).aggregate([]).to_pylist()
    return distinct


def _on_core(rows: pa.Table, core: tuple[int, int]) -> pa.Table:
    import pyarrow.compute as pc

    process, number = core
    return rows.filter((pc.field("process") == process) & (pc.field("core") == number))


def _spans(rows: pa.Table) -> Spans:
    start, end = (rows[name].to_numpy().astype(np.int64, copy=False) for name in ("start_ts", "end_ts"))
    return Spans(start, end)
