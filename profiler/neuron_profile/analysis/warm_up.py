"""When a training program's first step has ended, which traces, compiles and allocates for the first time."""

from __future__ import annotations

from neuron_tools.profile.reader import Profile

WARM_UP = """
SELECT coalesce(process_idx, 0) AS process, min(end_ts) AS until FROM HostSpan
WHERE kind = 'step' OR (kind = 'optimizer' AND name LIKE '%.step')
GROUP BY process HAVING count(*) > 1
"""
"""Query for the end of the first of several training steps, by process."""


def warm_up_end_ns(profile: Profile) -> int | None:
    """When the first step has ended on all processes; None of a chosen range, and without two steps."""
    if profile.range_ns is not None:
        return None
    until = profile.query(f"SELECT max(until) AS until FROM ({WARM_UP})").to_pylist()[0]["until"]
    return None if until is None else int(until)
