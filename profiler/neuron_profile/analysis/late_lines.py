"""Where a late rank spends more time than the others: a line that takes device or host longer there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.time.logical_cores import of_first_cores
from neuron_tools.frozen import frozen
from neuron_tools.profile.reader import Profile

SHARED = 0.1
"""Part of the late rank's time at a line that the others spend there, from which on it is common work."""
_DEVICE = """
SELECT coalesce(process_idx, 0) AS process, coalesce(source_file, '') AS file,
    coalesce(source_line, 0) AS line, any_value(layer) AS layer,
    CAST(sum(end_ts - start_ts) AS BIGINT) AS spent_ns
FROM FrameworkInstruction WHERE list_contains(?, coalesce(process_idx, 0)) AND source_file IS NOT NULL
    AND {chosen}
GROUP BY ALL
"""
# What passes on a thread before a dispatch, the user's own Python, belongs to the line that dispatches.
_HOST = """
WITH calls AS (
    SELECT coalesce(process_idx, 0) AS process, thread_idx, source_file AS file, source_line AS line,
        start_ts,
        lag(end_ts) OVER (PARTITION BY process_idx, thread_idx ORDER BY start_ts) AS before_ts
    FROM HostSpan
    WHERE kind IN ('dispatch', 'copy', 'collective', 'synchronize')
        AND list_contains(?, coalesce(process_idx, 0))
)
SELECT process, coalesce(file, '') AS file, coalesce(line, 0) AS line, '' AS layer,
    CAST(sum(greatest(0, start_ts - before_ts)) AS BIGINT) AS spent_ns
FROM calls WHERE before_ts IS NOT NULL AND file IS NOT NULL GROUP BY ALL
"""


@frozen
class LateLine:
    """The line that makes a rank late.

    Attributes:
        place: The line.
        excess_ns: Time it takes more there than on the other ranks.
        on_device: Whether the device's time is longer, else the host's.
        is_shared: Whether the other ranks spend time there too: it is an uneven share of common work.
    """

    place: Place
    excess_ns: int
    on_device: bool
    is_shared: bool = False


def late_line(profile: Profile, processes: Sequence[int], late: int) -> LateLine | None:
    """The line with the largest excess, None where no line takes longer than elsewhere.

    Args:
        processes: Processes of all ranks.
        late: The process that is late.
    """
    device = _DEVICE.format(chosen=of_first_cores(profile))
    found = [
        LateLine(place, excess_ns, on_device, is_shared)
        for query, on_device in ((device, True), (_HOST, False))
        for place, excess_ns, is_shared in [_largest_excess(profile, query, processes, late)]
        if excess_ns > 0
    ]
    return max(found, key=lambda each: each.excess_ns, default=None)


def _largest_excess(
    profile: Profile, query: str, processes: Sequence[int], late: int
) -> tuple[Place, int, bool]:
    spent: defaultdict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    layers: dict[tuple[str, int], str] = {}
    for row in profile.query(query, [list(processes)]).to_pylist():
        key = (row["file"], row["line"])
        spent[key][row["process"]] = row["spent_ns"]
        layers.setdefault(key, row["layer"] or "")
    best, most, is_shared = Place(), 0, False
    for key, by_process in sorted(spent.items()):
        others = sorted(by_process.get(process, 0) for process in processes if process != late)
        excess = by_process.get(late, 0) - (others[len(others) // 2] if others else 0)
        if excess > most:
            best, most = Place(key[0], key[1], "", layers[key]), excess
            is_shared = by_process[late] - excess > SHARED * by_process[late]
    return best, most, is_shared


def finding_of_ranks(
    rule: str,
    title: str,
    change: str,
    line: LateLine | None,
    evidence: Mapping[str, Any],
    *,
    gain_ns: int,
    total_ns: int,
) -> Finding:
    """A finding about what ranks wait for each other, where the late one spends its time.

    Args:
        line: Where the late rank spends it; None where no line stands out.
        gain_ns: What the change saves.
        total_ns: Time of all ranks as it is.
    """
    place = Place() if line is None else line.place
    return Finding(
        rule, title, change, place, gain_ns, device_gain_ns=0, total_ns=total_ns, evidence=evidence
    )
