"""What a profile of the device alone spent on each HLO operation, or on an engine's opcodes without one.

Such a profile (AWS's device profile) tells of no executions and no framework operations: all that ran counts
as one execution. Each moment of a core belongs to the computing instructions under way, else to transfers,
else to control instructions, else to nothing, so that the totals add up to the cores' time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuron_profile.analysis.comparison.operations import (
    Counters,
    OperationKey,
    OperationTotal,
    rounded,
)
from neuron_profile.analysis.time.logical_cores import of_first_cores
from neuron_tools.profile.exposure import CONTROL_OPCODES, Spans, exposed_ns
from neuron_tools.profile.reader import Profile

TRANSFERS, NOTHING = OperationKey("", "DMA", False), OperationKey("", "(nothing)", False)
_OPERATION = "coalesce(framework_name, hlo_name, engine || ' ' || opcode, '')"
_CORES = """
SELECT coalesce(process_idx, 0) AS process, coalesce(pcore_idx, 0) AS core, min(start_ts) AS begin_ns,
    max(end_ts) AS end_ns
FROM Instruction WHERE {chosen} GROUP BY ALL ORDER BY ALL
"""
_HERE = "coalesce(process_idx, 0) = ? AND coalesce(pcore_idx, 0) = ?"
_INSTRUCTIONS = f"""
SELECT start_ts AS start_ns, end_ts AS end_ns, coalesce(nullif(layer, 'Unknown'), '') AS module,
    {_OPERATION} AS operation, opcode IN ({", ".join(map(repr, CONTROL_OPCODES))}) AS control
FROM Instruction WHERE {_HERE}
"""
_TRANSFERS = f"SELECT start_ts AS start_ns, end_ts AS end_ns FROM DmaPacketAggregated WHERE {_HERE}"
_COUNTERS = f"""
SELECT coalesce(nullif(layer, 'Unknown'), '') AS module, {_OPERATION} AS operation, count(*) AS instructions,
    sum(coalesce(evt_wait_time_ns, 0)) AS semaphore_wait_ns,
    sum(coalesce(dma_wait_time_ns, 0)) AS dma_wait_ns, sum(coalesce(adjusted_flops, 0)) AS adjusted_flops,
    coalesce(sum(duration_ns) FILTER (WHERE engine = 'Tensor'), 0) AS tensor_ns
FROM Instruction GROUP BY ALL
"""


def instruction_totals(profile: Profile) -> tuple[dict[OperationKey, OperationTotal], int]:
    """Totals by operation, and the cores' time that they add up to; 0 where there are no instructions."""
    times: defaultdict[OperationKey, float] = defaultdict(float)
    for core in profile.query(_CORES.format(chosen=of_first_cores(profile))).to_pylist():
        _add_core(profile, core, times)
    whole = rounded(times)
    counters = {
        OperationKey(row.pop("module"), row.pop("operation"), False): Counters(
            **{name: int(value) for name, value in row.items()}
        )
        for row in profile.query(_COUNTERS).to_pylist()
    }
    totals = {key: OperationTotal(spent, counters.get(key, Counters())) for key, spent in whole.items()}
    return totals, sum(whole.values())


def _add_core(profile: Profile, core: dict[str, int], times: defaultdict[OperationKey, float]) -> None:
    here = [core["process"], core["core"]]
    rows = profile.query(_INSTRUCTIONS, here)
    control = rows["control"].to_numpy().astype(bool)
    every = _spans(rows)
    begin, end = core["begin_ns"], core["end_ns"]
    moved = _spans(profile.query(_TRANSFERS, here))
    tiers = [
        Spans(every.start_ns[~control], every.end_ns[~control]),
        Spans(np.clip(moved.start_ns, begin, end), np.clip(moved.end_ns, begin, end)),
        Spans(every.start_ns[control], every.end_ns[control]),
        Spans(np.array([begin]), np.array([end])),
    ]
    computing, moving, ordering, nothing = exposed_ns(tiers)
    spent = np.empty(len(control))
    spent[~control], spent[control] = computing, ordering
    for key, time in _by_operation(rows, spent):
        times[key] += time
    times[TRANSFERS] += float(moving.sum())
    times[NOTHING] += float(nothing.sum())


def _by_operation(rows: pa.Table, spent: npt.NDArray[np.float64]) -> Iterator[tuple[OperationKey, float]]:
    modules, operations = (
        rows[name].combine_chunks().dictionary_encode() for name in ("module", "operation")
    )
    kinds = len(operations.dictionary)
    code = modules.indices.to_numpy().astype(np.int64) * kinds + operations.indices.to_numpy()
    total = np.bincount(code, weights=spent)
    for number in np.unique(code).tolist():
        module, operation = modules.dictionary[number // kinds], operations.dictionary[number % kinds]
        yield OperationKey(module.as_py(), operation.as_py(), False), float(total[number])


def _spans(rows: pa.Table) -> Spans:
    return Spans(*(rows[name].to_numpy().astype(np.int64) for name in ("start_ns", "end_ns")))
