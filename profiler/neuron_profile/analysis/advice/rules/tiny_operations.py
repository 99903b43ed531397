"""Many executions of a few microseconds: most of their time is launching."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.reports.quantities import duration

TINY_NS = 10_000
MINIMUM_COUNT = 100
_LINE = """
SELECT coalesce(source_file, '') AS file, coalesce(source_line, 0) AS line, count(*) AS calls
FROM FrameworkInstruction WHERE end_ts - start_ts <= ? AND source_file IS NOT NULL
GROUP BY ALL ORDER BY calls DESC, file, line LIMIT 1
"""


def find(context: Context) -> Iterator[Finding]:
    """A finding where at least a hundred executions take at most 10 us each."""
    executions = context.executions
    if executions is None or context.what_if is None:
        return
    durations = executions.end_ns - executions.start_ns
    tiny = durations <= TINY_NS
    count = int(np.count_nonzero(tiny))
    launch_ns = round(executions.core.launch_overhead_ns)
    if count < MINIMUM_COUNT or count < len(executions) / 2:
        return
    rows = context.profile.query(_LINE, [TINY_NS]).to_pylist()
    yield Finding(
        "tiny_operations",
        f"{count:,} executions take at most {duration(TINY_NS)} each, less than launching them "
        f"({duration(launch_ns)})",
        "Compile the step (torch.compile, jax.jit): one launch for all, and intermediate values stay "
        "on the chip.",
        Place(rows[0]["file"], rows[0]["line"]) if rows else Place(),
        gain_ns=context.what_if.recorded_ns() - context.what_if.without_launches_ns(tiny),
        device_gain_ns=0,
        total_ns=context.what_if.recorded_ns(),
        evidence={"executions": count, "median_ns": int(np.median(durations[tiny])), "launch_ns": launch_ns},
    )
