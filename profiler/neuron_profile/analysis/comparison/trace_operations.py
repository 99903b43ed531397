"""What an imported trace's devices spent on each operator, told as captures tell it: to compare the two."""

from __future__ import annotations

from collections import defaultdict

from neuron_profile.analysis.comparison.operations import Counters, OperationKey, OperationTotal
from neuron_profile.analysis.traces.attribution import NOBODY, attribute
from neuron_tools.profile.reader import Profile

_FIRST_STARTS = """
SELECT coalesce(layer, '') AS module, coalesce(framework_name, '') AS operation,
    coalesce(is_backward, false) AS backward, min(start_ts) AS first
FROM FrameworkInstruction GROUP BY ALL ORDER BY first, module, operation
"""


def is_trace(profile: Profile) -> bool:
    """Whether a profile is another tool's trace and nothing else."""
    present = profile.tables()
    return bool(present.get("TraceSpan")) and not present.get("ExecutionInfo")


def trace_totals(profile: Profile) -> tuple[dict[OperationKey, OperationTotal], int]:
    """Totals by operator, in order of their first kernel, and their sum.

    Work that no operator is known for stands under its kernel's name. Time of several streams adds up.
    """
    found = attribute(profile)
    times: defaultdict[OperationKey, int] = defaultdict(int)
    calls: defaultdict[OperationKey, set[int]] = defaultdict(set)
    kernels: defaultdict[OperationKey, int] = defaultdict(int)
    rows = zip(
        found.modules, found.operators, found.kernels, found.is_backward.tolist(),
        found.duration_ns.tolist(), found.operator_id.tolist(),
    )  # fmt: skip
    for number, (module, operator, kernel, backward, duration_ns, operator_id) in enumerate(rows):
        key = OperationKey(module, operator or kernel, backward)
        times[key] += duration_ns
        kernels[key] += 1
        calls[key].add(operator_id if operator_id != NOBODY else -2 - number)
    totals = {
        key: OperationTotal(time, Counters(calls=len(calls[key]), instructions=kernels[key]))
        for key, time in times.items()
    }
    return totals, sum(times.values())


def in_order_of_time(
    profile: Profile, totals: dict[OperationKey, OperationTotal]
) -> dict[OperationKey, OperationTotal]:
    """A capture's totals in order of their first execution; what has none comes last."""
    rows = profile.query(_FIRST_STARTS).to_pylist()
    order = [OperationKey(row["module"], row["operation"], row["backward"]) for row in rows]
    known = dict.fromkeys(key for key in order if key in totals)
    return {key: totals[key] for key in (*known, *(key for key in totals if key not in known))}
