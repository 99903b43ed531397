"""What one profile spent on each operation of its hierarchy, with the counters that explain it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, fields

from neuron_profile.analysis.time.charges import charge_device_time
from neuron_tools.profile.reader import Profile

_COUNTERS = """
SELECT coalesce(layer, '') AS module, coalesce(framework_name, '') AS operation,
    coalesce(is_backward, false) AS backward, count(*) AS calls,
    sum(coalesce(hbm_read_bytes, 0) + coalesce(hbm_write_bytes, 0)) AS hbm_bytes,
    sum(coalesce(tensor_engine_instruction_count, 0) + coalesce(vector_engine_instruction_count, 0)
        + coalesce(scalar_engine_instruction_count, 0) + coalesce(gpsimd_engine_instruction_count, 0)
        + coalesce(sync_engine_instruction_count, 0)) AS instructions,
    any_value(source_file) AS file, any_value(source_line) AS line
FROM FrameworkInstruction GROUP BY ALL
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class OperationTotal:
    """Device time of an operation, in whole nanoseconds, with its counters and source line."""

    device_ns: int
    counters: Counters
    file: str = ""
    line: int = 0


NO_OPERATION = OperationKey("", "(no operation)", False)
"""Device time that belongs to no operation."""


def operation_totals(profile: Profile) -> tuple[dict[OperationKey, OperationTotal], int]:
    """Totals by operation, and the device time that they add up to with what belongs to none."""
    charges = charge_device_time(profile)
    times: defaultdict[OperationKey, float] = defaultdict(float)
    for charge in charges.charges:
        origin = charge.origin
        times[OperationKey(origin.module, origin.operation, origin.backward)] += charge.device_ns
    if charges.unattributed_ns:
        times[NO_OPERATION] += charges.unattributed_ns
    counters, places = _counters(profile)
    whole = rounded(times)
    totals = {
        key: OperationTotal(nanoseconds, counters.get(key, Counters()), *places.get(key, ("", 0)))
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
) -> tuple[dict[OperationKey, Counters], dict[OperationKey, tuple[str, int]]]:
    values: defaultdict[OperationKey, dict[str, int]] = defaultdict(dict)
    places: dict[OperationKey, tuple[str, int]] = {}
    for query in (_COUNTERS, _WAITS):
        for row in profile.query(query).to_pylist():
            key = OperationKey(row.pop("module"), row.pop("operation"), row.pop("backward"))
            if "file" in row:
                places[key] = (row.pop("file") or "", int(row.pop("line") or 0))
            values[key].update({name: int(value or 0) for name, value in row.items()})
    return {key: Counters(**numbers) for key, numbers in values.items()}, places
