"""What one profile spent on each operation of its hierarchy, with the counters that explain it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from neuron_profile.analysis.time.charges import Charges
from neuron_profile.analysis.time.logical_cores import of_first_cores
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

_COUNTERS = """
SELECT coalesce(layer, '') AS module, coalesce(framework_name, '') AS operation,
    coalesce(is_backward, false) AS backward, count(*) FILTER ({chosen}) AS calls,
    sum(coalesce(hbm_read_bytes, 0) + coalesce(hbm_write_bytes, 0)) AS hbm_bytes,
    sum(coalesce(tensor_engine_instruction_count, 0) + coalesce(vector_engine_instruction_count, 0)
        + coalesce(scalar_engine_instruction_count, 0) + coalesce(gpsimd_engine_instruction_count, 0)
        + coalesce(sync_engine_instruction_count, 0)) AS instructions,
    any_value(coalesce(own.source_file, call.source_file)) AS file,
    any_value(coalesce(own.source_line, call.source_line)) AS line,
    any_value(call.source_file) AS exact_file, any_value(call.source_line) AS exact_line
FROM FrameworkInstruction call
LEFT JOIN Frontier own ON own.stack_frame_id = split_part(call.stack_frame_ids, ',', 1)
GROUP BY ALL
"""
_WAITS = """
SELECT coalesce(layer, '') AS module, coalesce(framework_name, '') AS operation,
    coalesce(is_backward, false) AS backward, sum(coalesce(dma_wait_time_ns, 0)) AS dma_wait_ns,
    sum(coalesce(evt_wait_time_ns, 0)) AS semaphore_wait_ns,
    coalesce(sum(duration_ns) FILTER (WHERE engine = 'Tensor'), 0) AS tensor_ns,
    sum(coalesce(adjusted_flops, 0)) AS adjusted_flops,
    sum(coalesce(spill_save_bytes, 0) + coalesce(spill_reload_bytes, 0)) AS spill_bytes
FROM Instruction GROUP BY ALL
"""


@dataclass(frozen=True, slots=True, order=True)
class OperationKey:
    """Place of an operation in the hierarchy."""

    module: str
    operation: str
    backward: bool


@frozen
class Counters:
    """What an operation did, over all its calls.

    Attributes:
        tensor_ns: Sum of its Tensor instructions' durations.
    """

    calls: int = 0
    hbm_bytes: int = 0
    instructions: int = 0
    dma_wait_ns: int = 0
    semaphore_wait_ns: int = 0
    adjusted_flops: int = 0
    spill_bytes: int = 0
    tensor_ns: int = 0


COUNTER_NAMES = tuple(field.name for field in fields(Counters))


@frozen
class OperationTotal:
    """Device time of an operation, in whole nanoseconds, with its counters and source line.

    Attributes:
        file, line: The user's own line.
        library_file, library_line: The exact line, where that is a library's.
    """

    device_ns: int
    counters: Counters
    file: str = ""
    line: int = 0
    library_file: str = ""
    library_line: int = 0


NO_OPERATION = OperationKey("", "(no operation)", False)
"""Device time that belongs to no operation."""


def operation_totals(profile: Profile, charges: Charges) -> tuple[dict[OperationKey, OperationTotal], int]:
    """Totals by operation, and the device time that they add up to with what belongs to none."""
    times: defaultdict[OperationKey, float] = defaultdict(float)
    for charge in charges.charges:
        origin = charge.origin
        times[OperationKey(origin.module, origin.operation, origin.backward)] += charge.device_ns
    if charges.unattributed_ns:
        times[NO_OPERATION] += charges.unattributed_ns
    counters, places = _counters(profile)
    whole = rounded(times)
    totals = {
        key: OperationTotal(nanoseconds, counters.get(key, Counters()), *places.get(key, ()))
        for key, nanoseconds in whole.items()
    }
    return totals, sum(whole.values())


def rounded(times: Mapping[OperationKey, float]) -> dict[OperationKey, int]:
    """Whole nanoseconds whose sum is the rounded sum: the largest remainders are rounded up."""
    whole = {key: int(value) for key, value in times.items()}
    missing = round(sum(times.values())) - sum(whole.values())
    by_remainder = sorted(times, key=lambda key: (whole[key] - times[key], key))
    for key in by_remainder[: max(0, missing)]:
        whole[key] += 1
    return whole


def _counters(
    profile: Profile,
) -> tuple[dict[OperationKey, Counters], dict[OperationKey, tuple[str, int, str, int]]]:
    values: defaultdict[OperationKey, dict[str, int]] = defaultdict(dict)
    places: dict[OperationKey, tuple[str, int, str, int]] = {}
    for query in (_COUNTERS.format(chosen=of_first_cores(profile)), _WAITS):
        for row in profile.query(query).to_pylist():
            key = OperationKey(row.pop("module"), row.pop("operation"), row.pop("backward"))
            if "file" in row:
                places[key] = _place(row)
            values[key].update({name: int(value or 0) for name, value in row.items()})
    return {key: Counters(**numbers) for key, numbers in values.items()}, places


def _place(row: dict[str, Any]) -> tuple[str, int, str, int]:
    """The own line of a row, and the library's where that is another; takes both out of the row."""
    own, exact = ((row.pop(f"{kind}file") or "", int(row.pop(f"{kind}line") or 0)) for kind in ("", "exact_"))
    return (*own, *(("", 0) if exact == own else exact))
