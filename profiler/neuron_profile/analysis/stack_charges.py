"""Charges device time to source stacks, down to the lines inside kernels.

`charges` charges operations; a kernel is one operation there, called at one line. Here each moment of an
execution is charged to a pair of stacks: that of the instruction which was active, and that of the
operation around it. Outside kernels the two are the same. What operations were fused into is charged to all
of them, each by its share. The charges of a profile add up to its device time, by the same priorities
(`exposure`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_profile.analysis.charges import CONTROL_OPCODES, EXECUTION_EVENT
from neuron_profile.analysis.exposure import Spans, exposed_ns
from neuron_tools.profile.reader import Profile

Ints = npt.NDArray[np.int64]
NO_STACK = ""
_SEPARATOR = "|"
_SHARE, _NEXT = "*", ";"  # a mixture: "own|operation|backward*share;..."

_CORES = f"""
SELECT coalesce(process_idx, 0) AS process, coalesce(nc_idx, 0) AS core
FROM SystemProfileEvents WHERE name = '{EXECUTION_EVENT}'
UNION SELECT coalesce(process_idx, 0), coalesce(pcore_idx, 0) FROM FrameworkInstruction
ORDER BY ALL
"""
_CONTROL = f"opcode IN ({', '.join(repr(opcode) for opcode in CONTROL_OPCODES)})"
_LEAF = "split_part(coalesce({table}.stack_frame_ids, ''), ',', 1)"
_KEY = (
    f"{_LEAF.format(table='own')} || '|' || {_LEAF.format(table='operation')} || '|' || "
    "CAST(coalesce(operation.is_backward, false) AS INTEGER)"
)
_HERE = "coalesce({table}.process_idx, 0) = $process AND coalesce({table}.{core}, 0) = $core"
_MIXTURES = f"""(
    SELECT part.raw_hlo_id AS hlo, string_agg({_LEAF.format(table="operation")} || '|' ||
        {_LEAF.format(table="operation")} || '|' || CAST(coalesce(operation.is_backward, false) AS INTEGER) ||
        '*' || part.share, ';' ORDER BY operation.id) AS key
    FROM FrameworkShare part JOIN FrameworkInstruction operation ON operation.id = part.raw_framework_id
    GROUP BY part.raw_hlo_id
)"""
_INSTRUCTIONS = f"""
SELECT own.start_ts, own.end_ts, coalesce(mixture.key, {_KEY}) AS key, own.{_CONTROL} AS control
FROM Instruction own LEFT JOIN FrameworkInstruction operation ON operation.id = own.raw_framework_id
LEFT JOIN {_MIXTURES} mixture ON mixture.hlo = own.raw_hlo_id
WHERE {_HERE.format(table="own", core="pcore_idx")}
"""
_TRANSFERS = f"""
SELECT dma.start_ts, dma.end_ts, coalesce(mixture.key, {_KEY}) AS key
FROM DmaPacketAggregated dma LEFT JOIN {_MIXTURES} mixture ON mixture.hlo = dma.raw_hlo_id
LEFT JOIN Instruction own ON own.id = dma.trigger
LEFT JOIN FrameworkInstruction operation
    ON operation.id = coalesce(dma.raw_framework_id, own.raw_framework_id)
WHERE {_HERE.format(table="dma", core="pcore_idx")}
"""
_OPERATIONS = f"""
SELECT operation.start_ts, operation.end_ts, {_KEY} AS key
FROM FrameworkInstruction operation LEFT JOIN Instruction own ON false
WHERE {_HERE.format(table="operation", core="pcore_idx")} ORDER BY operation.start_ts
"""
_EXECUTIONS = f"""
SELECT start_ts, end_ts, '' AS key FROM SystemProfileEvents execution
WHERE name = '{EXECUTION_EVENT}' AND {_HERE.format(table="execution", core="nc_idx")} ORDER BY start_ts
"""


@dataclass(frozen=True, slots=True)
class StackPair:
    """Where work came from.

    Attributes:
        own: Id of the innermost frame of the instruction's own stack; "" = it has none.
        operation: The same of the framework operation that it belongs to.
        backward: Whether the operation belongs to the backward pass.
    """

    own: str
    operation: str
    backward: bool


@dataclass(frozen=True, slots=True)
class _Keyed:
    spans: Spans
    keys: pa.Array

    def chosen(self, mask: npt.NDArray[np.bool_]) -> _Keyed:
        spans = Spans(self.spans.start_ns[mask], self.spans.end_ns[mask])
        return _Keyed(spans, self.keys.filter(pa.array(mask)))


def charge_stacks(profile: Profile) -> dict[StackPair, float]:
    """Device time in ns of each pair of stacks; the sum is the profile's device time."""
    charged: dict[StackPair, float] = {}
    for row in profile.query(_CORES).to_pylist():
        tiers = _tiers(profile, row)
        exposed = np.concatenate(exposed_ns([tier.spans for tier in tiers]))
        keys = pa.chunked_array([tier.keys for tier in tiers], pa.string())
        for key, device_ns in _sums(keys, exposed).items():
            for pair, share in stack_pairs(key):
                charged[pair] = charged.get(pair, 0.0) + device_ns * share
    return charged


def stack_pairs(key: str) -> list[tuple[StackPair, float]]:
    """The pairs that a key of the queries names, and each one's part; the parts sum to 1."""
    if _SHARE not in key:
        return [(stack_pair(key), 1.0)]
    parts = [part.rpartition(_SHARE) for part in key.split(_NEXT)]
    total = sum(float(share) for _, _, share in parts)
    return [(stack_pair(pair), float(share) / total) for pair, _, share in parts]


def stack_pair(key: str) -> StackPair:
    """The pair that a key of the queries names."""
    own, operation, backward = key.split(_SEPARATOR) if key else (NO_STACK, NO_STACK, "0")
    return StackPair(own or operation, operation, backward == "1")


def _sums(keys: pa.ChunkedArray, exposed: npt.NDArray[np.float64]) -> dict[str, float]:
    if not len(keys):
        return {}
    coded = keys.combine_chunks().dictionary_encode()
    sums = np.bincount(coded.indices.to_numpy(), weights=exposed, minlength=len(coded.dictionary))
    return dict(zip(coded.dictionary.to_pylist(), sums.tolist()))


def _tiers(profile: Profile, core: dict[str, int]) -> list[_Keyed]:
    """One NeuronCore's spans by falling priority."""
    instructions = profile.query(_INSTRUCTIONS, core)
    control = instructions["control"].fill_null(False).to_numpy().astype(bool)
    every = _keyed(instructions)
    operations = _keyed(profile.query(_OPERATIONS, core))
    executions = _keyed(profile.query(_EXECUTIONS, core))
    return [
        every.chosen(~control),
        _keyed(profile.query(_TRANSFERS, core)),
        every.chosen(control),
        operations,
        _with_only_operation(executions.spans, operations),
    ]


def _with_only_operation(executions: Spans, operations: _Keyed) -> _Keyed:
    """Each execution with the operation that is alone in it, as in eager mode; else without one."""
    starts = operations.spans.start_ns
    first = np.searchsorted(starts, executions.start_ns)
    alone = np.searchsorted(starts, executions.end_ns) - first == 1
    place = pa.array(first, mask=~alone)
    return _Keyed(executions, operations.keys.take(place).fill_null(""))


def _keyed(rows: pa.Table) -> _Keyed:
    start, end = (rows[name].to_numpy().astype(np.int64, copy=False) for name in ("start_ts", "end_ts"))
    return _Keyed(Spans(start, end), rows["key"].combine_chunks())
