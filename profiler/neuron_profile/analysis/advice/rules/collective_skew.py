"""One rank comes late to the collectives, and all others wait for it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.late_lines import finding_of_ranks, late_line
from neuron_profile.analysis.rank_meetings import rank_meetings
from neuron_profile.analysis.warm_up import warm_up_end_ns
from neuron_profile.reports.quantities import duration

MINIMUM_SHARE = 0.05
MINIMUM_MEETINGS = 2


def find(context: Context) -> Iterator[Finding]:
    """A finding where the ranks would end a twentieth earlier if one of them were not late.

    Work at a line that the others' devices run too is spread evenly; other work is as long as theirs. Stages
    of a pipeline come one after the other: `pipeline_bubbles` tells what they wait for. Where there are
    several training steps, nothing up to the end of the first counts: ranks start when their processes do.
    """
    since_ns = warm_up_end_ns(context.profile)
    meetings = rank_meetings(context.profile)
    if since_ns is not None:
        meetings = meetings.since(since_ns)
    if len(meetings) < MINIMUM_MEETINGS or meetings.have_messages:
        return
    lateness = meetings.lateness_ns()
    late = int(np.argmax(lateness))
    total_ns = int(meetings.end_ns.max()) - context.start_ns
    rank = meetings.ranks[late]
    line = late_line(context.profile, meetings.processes, meetings.processes[late])
    gain_ns = meetings.gain_without(late)
    if line is not None and line.on_device and line.is_shared:
        gain_ns = min(gain_ns, meetings.gain_with(meetings.evened_work_ns()))
    steady_ns = total_ns if since_ns is None else int(meetings.end_ns.max()) - since_ns
    if gain_ns < MINIMUM_SHARE * steady_ns:
        return
    where = "" if line is None else f", {'on the device' if line.on_device else 'on the host'}"
    yield finding_of_ranks(
        "collective_skew",
        f"Rank {rank} comes late to the collectives{where}: "
        f"the others wait {duration(int(lateness[late]))} for it",
        f"Give rank {rank} as much work as the others: even batches and sequence lengths, layers spread "
        "evenly over pipeline stages, nothing that one rank alone does between collectives (logging, "
        "checkpoints, data loading).",
        line,
        {
            "rank": rank,
            "waited_ns": int(lateness[late]),
            "excess_at_line_ns": line.excess_ns if line is not None else 0,
            "meetings": len(meetings),
        },
        gain_ns=gain_ns,
        total_ns=total_ns,
    )
