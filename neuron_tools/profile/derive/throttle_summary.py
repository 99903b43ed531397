"""ThrottleSummary: how long each core was limited, by cause."""

from __future__ import annotations

from typing import Any

from neuron_tools.profile.store.recorded import RecordedTables

# The hardware reports a limit of k / n of the full rate; k = n is no limit.
_QUERY = """
    SELECT CAST(coalesce(pcore_idx, 0) AS INTEGER) AS nc_idx, type AS throttle_type,
           process_idx,
           CAST(sum(duration) FILTER (k < n) AS BIGINT) AS throttled_ns,
           CAST(sum(duration * k / n) FILTER (k < n) AS DOUBLE) AS usable_ns
    FROM Throttle WHERE n > 0 GROUP BY ALL ORDER BY process_idx, nc_idx, throttle_type
"""


def throttle_summary(recorded: RecordedTables, total_ns: int) -> dict[str, list[Any]]:
    """ThrottleSummary rows, one per process, core and cause.

    `max_achievable_util_with_throttling_percent` is the mean limit over the whole run, 1 where nothing
    limits (sections "Throttling" of the published profiler guide: limit = k / n, throttling = 1 - limit).
    """
    rows = []
    for row in recorded.rows(_QUERY):
        throttled_ns = min(row["throttled_ns"] or 0, total_ns)
        lost_ns = max((row["throttled_ns"] or 0) - (row["usable_ns"] or 0.0), 0.0)
        rows.append(
            {
                "nc_idx": row["nc_idx"],
                "throttle_type": row["throttle_type"],
                "throttle_active_time_ns": throttled_ns,
                "throttle_active_time_percent": throttled_ns / total_ns if total_ns else 0.0,
                "max_achievable_util_with_throttling_percent": max(0.0, 1 - lost_ns / total_ns)
                if total_ns
                else 1.0,
                "process_idx": row["process_idx"],
            }
        )
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
