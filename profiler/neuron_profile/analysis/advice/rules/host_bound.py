"""The device waits for the host: dispatch, Python, input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.advice.rules.host_activity import KINDS
from neuron_profile.analysis.advice.rules.host_synchronisation import waiting_places
from neuron_profile.analysis.collective_waits import collective_wait_ns
from neuron_profile.analysis.host_activity import HostActivity, HostIdle
from neuron_profile.analysis.occupancy import DEVICE_BOUND_SHARE, Bound, Occupancy
from neuron_profile.analysis.whatif.kernel_lines import kernel_lines
from neuron_profile.reports.quantities import percent

SEEN_SHARE = 0.1
"""Part of the idle time that samples must have seen for them to name the line."""
# The host's time up to each of its calls belongs to the line that makes the call, and so does dispatching
# it; a wait for the device, inside a copy or a synchronisation, is nobody's. Where there are several steps,
# the first one warms up.
_SLOWEST = """
WITH warm_up AS (
    SELECT coalesce(process_idx, 0) AS process, min(end_ts) AS until FROM HostSpan
    WHERE kind = 'step' OR (kind = 'optimizer' AND name LIKE '%.step')
    GROUP BY process HAVING count(*) > 1
), calls AS (
    SELECT coalesce(process_idx, 0) AS process, kind, stack_frame_ids AS stack, source_file, source_line,
        start_ts, duration_ns, start_ts - max(end_ts) OVER (
            PARTITION BY process_idx ORDER BY start_ts, end_ts
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before_ns
    FROM HostSpan WHERE kind IN ('dispatch', 'copy', 'synchronize', 'collective')
)
SELECT coalesce(own.source_file, calls.source_file, '') AS file,
    coalesce(own.source_line, calls.source_line, 0) AS line, count(*) AS calls,
    CAST(sum(greatest(coalesce(before_ns, 0), 0)
        + CASE WHEN kind = 'dispatch' THEN duration_ns ELSE 0 END) AS BIGINT) AS host_ns
FROM calls
LEFT JOIN warm_up USING (process)
LEFT JOIN Frontier own ON own.stack_frame_id = calls.stack
WHERE calls.source_file <> '' AND (warm_up.until IS NULL OR start_ts >= warm_up.until)
GROUP BY ALL ORDER BY host_ns DESC, file, line LIMIT 1
"""


def find(context: Context) -> Iterator[Finding]:
    """A finding where the device is idle for more than a tenth of the time after the first step.

    What the host does before the device first runs, and in the first step, is no part of the gain; nor is
    that the device launches each compiled graph and each kernel, which no host is quick enough to hide.
    """
    occupancy = context.occupancy
    if occupancy.bound not in (Bound.HOST, Bound.BOTH) or context.what_if is None:
        return
    launching_ns = _launching_ns(context)
    launching_share = launching_ns / max(occupancy.window_ns, 1)
    if occupancy.steady_share + launching_share >= DEVICE_BOUND_SHARE:
        return
    idle = context.host_idle
    rest = () if idle is None else _rest(idle, context)
    idle_ns = _idle_ns(occupancy) if idle is None else _untold_ns(idle, rest)
    if not idle_ns:  # other rules report all of the idle time
        return
    waiting_share = _waiting_share(1 - occupancy.steady_share - launching_share, idle, idle_ns)
    place, shown = _line(context.profile.query(_SLOWEST).to_pylist(), rest, idle_ns)
    total_ns = context.what_if.recorded_ns()
    compiled = bool(occupancy.compiled_graphs)
    waits_ns = collective_wait_ns(context.profile)
    if (
        waits_ns > occupancy.idle_ns / max(occupancy.cores, 1) / 2
    ):  # it is the other ranks that are waited for
        return
    own_ns = launching_ns // max(occupancy.cores, 1)
    yield Finding(
        "host_bound",
        f"The device waits for the host {percent(waiting_share)} of the time",
        "Dispatch less often: "
        + ("" if compiled else "torch.compile (or jax.jit) turns many operations into one dispatch; ")
        + "larger batches give the device more work for each; prepare inputs beside the computation.",
        place,
        gain_ns=max(0, min(idle_ns, total_ns - context.what_if.without_host_ns() - waits_ns) - own_ns),
        device_gain_ns=0,
        total_ns=total_ns,
        evidence={
            "executions": occupancy.executions,
            "device_busy_share": round(occupancy.steady_share, 4),
            "idle_ns": occupancy.idle_ns,
            **shown,
        },
    )


def _launching_ns(context: Context) -> int:
    """Idle time of all cores that the device itself needs between executions to launch the next.

    Not between operators that run one by one, as they are launched as one when they are compiled, nor for
    what takes less time than launching it, which wants to be larger.
    """
    executions = context.executions
    assert executions is not None
    kernels = {use.key for use in context.programs if kernel_lines(use.program) is not None}
    keys = list(zip(executions.process.tolist(), executions.executable.tolist()))
    is_operator = np.array([key in executions.eager and key not in kernels for key in keys])
    launching_ns, most_ns = 0, round(executions.core.launch_overhead_ns)
    cores = np.stack([executions.process, executions.core_index])
    for core in np.unique(cores, axis=1).T:
        rows = np.flatnonzero((cores == core[:, None]).all(axis=0))
        rows = rows[np.argsort(executions.start_ns[rows], kind="stable")]
        before, after = rows[:-1], rows[1:]
        gaps_ns = np.clip(executions.start_ns[after] - executions.end_ns[before], 0, most_ns)
        is_worth_it = executions.end_ns[after] - executions.start_ns[after] >= most_ns
        launching_ns += int(gaps_ns[is_worth_it & ~(is_operator[before] & is_operator[after])].sum())
    return launching_ns


def _rest(idle: HostIdle, context: Context) -> tuple[HostActivity, ...]:
    """What the host did while the device was idle and no other rule reports, the longest first."""
    waits = waiting_places(context.profile)
    others = (each for each in idle.activities if each.kind not in (*KINDS, "collective"))
    return tuple(each for each in others if each.kind != "copy" or waits.isdisjoint(_places(each)))


def _waiting_share(idle_share: float, idle: HostIdle | None, untold_ns: int) -> float:
    """Of the time in which the device is idle, as a part of all, what no other rule reports."""
    if idle is None or not idle.window_ns:
        return idle_share
    return min(idle_share, untold_ns / idle.window_ns)


def _untold_ns(idle: HostIdle, rest: tuple[HostActivity, ...]) -> int:
    """Idle time that no other rule reports, ns.

    Steps of a few milliseconds fit between two samples: idle time that none of them saw is divided in the
    same proportion as what they saw.
    """
    seen_ns = sum(activity.idle_ns for activity in idle.activities)
    part = sum(activity.idle_ns for activity in rest) / seen_ns if seen_ns else 1.0
    return round(max(idle.idle_ns, seen_ns) * part)


def _line(
    slowest: Sequence[Mapping[str, Any]], rest: Sequence[HostActivity], idle_ns: int
) -> tuple[Place, dict[str, Any]]:
    """The line to look at, and the evidence for it: of what the host was seen to do, else of its calls."""
    if rest and (not slowest or sum(activity.idle_ns for activity in rest) >= SEEN_SHARE * idle_ns):
        most = rest[0]
        return Place(most.file, most.line, most.function), {"kind": most.kind, "line_idle_ns": most.idle_ns}
    if slowest:
        (row,) = slowest
        return Place(row["file"], row["line"]), {"line_host_ns": row["host_ns"], "line_calls": row["calls"]}
    return Place(), {}


def _places(activity: HostActivity) -> tuple[str, str]:
    return f"{activity.file}:{activity.line}", activity.inside


def _idle_ns(occupancy: Occupancy) -> int:
    """Gaps between executions of one core, after the first step where there are several."""
    idle_ns = occupancy.idle_ns
    if occupancy.has_steps:
        idle_ns = occupancy.steady_window_ns - occupancy.steady_device_ns
    return idle_ns // max(occupancy.cores, 1)
