"""Active time of engines, per logical core."""

from __future__ import annotations

from neuron_profile.analysis.time.logical_cores import physical_cores
from neuron_tools.profile.reader import Profile

_LONGEST_NS = 1 << 62
_ACTIVE = """
WITH cut AS (
    SELECT engine, coalesce(process_idx, 0) AS process, coalesce(pcore_idx, 0) AS core,
        sum(least(end_ts, ?) - greatest(start_ts, ?)) AS active_ns
    FROM ActiveTime
    WHERE least(end_ts, ?) > greatest(start_ts, ?) AND (? IS NULL OR coalesce(process_idx, 0) = ?)
    GROUP BY ALL
), used AS (
    SELECT process, core // ? AS logical, engine = 'cc' AS moves, count(DISTINCT core) AS cores
    FROM cut GROUP BY ALL
)
SELECT engine, CAST(sum(active_ns / cores) AS BIGINT) AS active_ns
FROM cut JOIN used ON cut.process = used.process AND core // ? = logical AND (engine = 'cc') = moves
GROUP BY engine ORDER BY engine
"""


def engine_active_ns(profile: Profile, process: int | None = None) -> dict[str, int]:
    """Active time of each engine, ns, summed over logical cores, of one process or all.

    Of the physical cores of a logical one it is the mean of those that did anything: a kernel that was
    launched on one of them leaves the other alone. A collective is the logical core's, and stands on one.
    """
    low, high = profile.range_ns or (-_LONGEST_NS, _LONGEST_NS)
    size = physical_cores(profile)
    rows = profile.query(_ACTIVE, [high, low, high, low, process, process, size, size])
    return {row["engine"]: int(row["active_ns"]) for row in rows.to_pylist()}
