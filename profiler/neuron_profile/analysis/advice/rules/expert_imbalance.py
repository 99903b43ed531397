"""Experts of a mixture get uneven numbers of tokens: the ranks with few wait for the one with most."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.late_lines import finding_of_ranks, late_line
from neuron_profile.analysis.rank_meetings import RankMeetings, rank_meetings
from neuron_profile.reports.quantities import percent

MINIMUM_SHARE = 0.05
MINIMUM_EXCESS = 0.1
"""Part by which the busiest rank's work passes the mean."""
_EXCHANGE = "AllToAll"


def find(context: Context) -> Iterator[Finding]:
    """A finding where ranks work for unlike times between two exchanges of tokens, at the busiest one's line.

    The gain is that of the same work spread evenly, all ranks played again from meeting to meeting.
    """
    meetings = rank_meetings(context.profile)
    work = meetings.work_ns()
    uneven = _uneven_exchanges(meetings, work)
    if not uneven.any():
        return
    evened = meetings.evened_work_ns(uneven)
    gain_ns, total_ns = meetings.gain_with(evened), int(meetings.end_ns.max()) - context.start_ns
    if gain_ns < MINIMUM_SHARE * total_ns:
        return
    excess = float(work[uneven].max(axis=1).sum() / evened[uneven].max(axis=1).sum()) - 1
    by_rank = work[uneven].sum(axis=0)
    busiest = int(np.argmax(by_rank))
    line = late_line(context.profile, meetings.processes, meetings.processes[busiest])
    yield finding_of_ranks(
        "expert_imbalance",
        f"Experts get uneven numbers of tokens: the busiest rank works {percent(excess)} longer than the "
        "mean",
        "Balance the router: an auxiliary loss or a bias for each expert, a limit of tokens for each (a "
        "capacity factor near 1), or experts placed so that each rank gets as many tokens.",
        line,
        {
            "busiest_rank": meetings.ranks[busiest],
            "exchanges": int(uneven.sum()),
            **{f"rank{rank}_ns": int(ns) for rank, ns in zip(meetings.ranks, by_rank)},
        },
        gain_ns=gain_ns,
        total_ns=total_ns,
    )


def _uneven_exchanges(meetings: RankMeetings, work: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """(meetings,) the exchanges that come next after another one of their group, for which a rank is late.

    Experts ran before the second of a layer; what runs before the first takes all ranks as long.
    """
    found = np.zeros(len(meetings), bool)
    last: dict[int, str] = {}
    for row, operation in enumerate(meetings.operations):
        group = int(meetings.group[row])
        found[row] = operation == _EXCHANGE and last.get(group) == _EXCHANGE
        last[group] = operation
    mean = meetings.evened_work_ns(found).max(axis=1, initial=0)
    late: npt.NDArray[np.bool_] = work.max(axis=1, initial=0) > (1 + MINIMUM_EXCESS) * mean
    return np.logical_and(found, late)
