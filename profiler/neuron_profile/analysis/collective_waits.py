"""Time in which a rank's device executes nothing because a collective of torch.distributed holds it."""

from __future__ import annotations

from neuron_profile.analysis.spans import length_ns, overlap_ns, process_union
from neuron_profile.analysis.time.core_spans import EXECUTION_EVENT
from neuron_tools.profile.reader import Profile

_PROCESSES = (
    "SELECT DISTINCT coalesce(process_idx, 0) AS process FROM CcOp WHERE group_name IS NOT NULL ORDER BY 1"
)
_COLLECTIVES = """
SELECT least(trigger_start_ts, start_ts) AS start_ns, end_ts AS end_ns FROM CcOp
WHERE group_name IS NOT NULL AND coalesce(process_idx, 0) = ? ORDER BY start_ns
"""
_EXECUTIONS = f"""
SELECT start_ts AS start_ns, end_ts AS end_ns FROM SystemProfileEvents
WHERE name = '{EXECUTION_EVENT}' AND coalesce(process_idx, 0) = ? ORDER BY start_ns
"""


def collective_wait_ns(profile: Profile) -> int:
    """Of the rank that waits longest: from being ready for a collective to its end, nothing else running."""
    whole = profile.whole
    longest = 0
    for process in whole.kept("processes with collectives", lambda: whole.query(_PROCESSES)[0].to_pylist()):
        waiting = process_union(profile, _COLLECTIVES, process)
        executing = process_union(profile, _EXECUTIONS, process)
        longest = max(longest, length_ns(waiting) - overlap_ns(waiting, executing))
    return longest
