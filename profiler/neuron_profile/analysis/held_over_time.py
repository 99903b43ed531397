"""What each core's memory held over time, by the categories that also tell its peak."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import Any

from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

OTHER = "other"
ORDER = ("parameter", "buffer", "optimizer", "gradient", "activation", OTHER)
"""Categories from what is held longest to what comes and goes; those of other tools stand before the last."""

_CATEGORIES = """
SELECT DISTINCT category FROM (SELECT category FROM MemoryEvent UNION ALL SELECT category FROM TensorName)
WHERE category IS NOT NULL
"""
_RANGE = "SELECT min(timestamp) AS first, max(timestamp) AS last FROM MemoryEvent"
# What is given back has the category under which it was taken. The rest was taken before the capture began,
# or has none.
_HELD = """
WITH names AS (
    SELECT coalesce(process_idx, 0) AS process, address, any_value(category) AS named
    FROM TensorName GROUP BY ALL
), events AS (
    SELECT coalesce(process_idx, 0) AS process, coalesce(pcore_idx, 0) AS core, event_idx, timestamp, address,
        kind, size, held_bytes, category
    FROM MemoryEvent WHERE timestamp <= $last
), changes AS (
    SELECT process, core, event_idx, timestamp, held_bytes,
        CASE kind WHEN 'allocate' THEN size ELSE -size END AS change,
        CASE WHEN kind = 'allocate' THEN coalesce(named, category)
            WHEN lag(kind) OVER of_address = 'allocate' THEN coalesce(named, lag(category) OVER of_address)
        END AS category
    FROM events LEFT JOIN names USING (process, address)
    WINDOW of_address AS (PARTITION BY process, core, address ORDER BY event_idx)
), running AS MATERIALIZED (
    SELECT process, core, event_idx, timestamp, held_bytes, [{sums}] AS held
    FROM changes WINDOW of_core AS (PARTITION BY process, core ORDER BY event_idx)
)
SELECT process, core, $first AS time_ns, arg_max(held_bytes, event_idx) AS total,
    arg_max(held, event_idx) AS held
FROM running WHERE timestamp < $first GROUP BY process, core
UNION ALL
SELECT process, core, arg_max(timestamp, held_bytes), max(held_bytes), arg_max(held, held_bytes)
FROM running WHERE timestamp >= $first
GROUP BY process, core, floor((timestamp - $first) / $step)
UNION ALL
SELECT process, core, $last, arg_max(held_bytes, event_idx), arg_max(held, event_idx)
FROM running GROUP BY process, core
ORDER BY process, core, time_ns
"""
_SUM = "coalesce(sum(change) FILTER (category = {}) OVER of_core, 0)"


@frozen
class HeldOverTime:
    """Bytes that a NeuronCore's memory held over time.

    Attributes:
        time_ns: Ascending; what was held at one holds until the next. Of a short time, where most was held.
        by_category: For each category that was ever held, its bytes at each time; they add up to all.
    """

    process: int
    core: int
    time_ns: tuple[int, ...]
    by_category: dict[str, tuple[int, ...]]


def held_over_time(profile: Profile, points: int) -> tuple[HeldOverTime, ...]:
    """What each core held in a profile, or in a range of it; empty where no events are recorded.

    Args:
        points: Into so many times the range is divided.
    """
    whole = profile.whole
    if not whole.tables().get("MemoryEvent"):
        return ()
    first, last = profile.range_ns or whole.query(_RANGE).to_pylist()[0].values()
    kinds = {row["category"] for row in whole.query(_CATEGORIES).to_pylist()} - {OTHER}
    categories = sorted(kinds, key=lambda kind: (ORDER.index(kind) if kind in ORDER else len(ORDER), kind))
    sums = ", ".join(_SUM.format("'" + kind.replace("'", "''") + "'") for kind in categories)
    where = {"first": first, "last": last, "step": max(1.0, (last - first + 1) / points)}
    rows = whole.query(_HELD.format(sums=sums), where).to_pylist()
    return tuple(
        _series(process, core, categories, list(of_core))
        for (process, core), of_core in groupby(rows, key=itemgetter("process", "core"))
    )


def _series(process: int, core: int, categories: list[str], rows: list[dict[str, Any]]) -> HeldOverTime:
    columns = dict(zip(categories, zip(*(row["held"] for row in rows))))
    columns[OTHER] = tuple(row["total"] - sum(row["held"]) for row in rows)
    held = {name: tuple(map(int, values)) for name, values in columns.items() if any(values)}
    return HeldOverTime(process, core, tuple(row["time_ns"] for row in rows), held)
