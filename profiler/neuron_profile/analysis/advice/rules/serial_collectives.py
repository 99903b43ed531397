"""Many collectives one after the other, nothing computed meanwhile: one bucket would take a fraction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.rank_meetings import rank_meetings
from neuron_profile.analysis.serial_runs import SerialRun, serial_runs
from neuron_profile.reports.quantities import duration

MINIMUM_SHARE = 0.05


def find(context: Context) -> Iterator[Finding]:
    """A finding for each line whose collectives, joined and begun early, save a twentieth of the time."""
    meetings = rank_meetings(context.profile)
    if not len(meetings):
        return
    total_ns = int(meetings.end_ns.max()) - context.start_ns
    by_line: dict[tuple[str, int], list[SerialRun]] = defaultdict(list)
    for run in serial_runs(context.profile, meetings.processes[0]):
        by_line[run.file, run.line].append(run)
    for _, runs in sorted(by_line.items()):
        gain_ns = sum(run.gain_ns for run in runs)
        if gain_ns >= MINIMUM_SHARE * total_ns:
            yield _finding(runs, gain_ns, total_ns, meetings.ranks[0])


def _finding(runs: Sequence[SerialRun], gain_ns: int, total_ns: int, rank: int) -> Finding:
    first, count = runs[0], sum(run.count for run in runs)
    exposed_ns = sum(run.exposed_ns for run in runs)
    several = "one after the other, " if count > len(runs) else ""
    return Finding(
        "serial_collectives",
        f"{count} x {first.operation} {several}{duration(exposed_ns)} in which nothing is computed",
        "Join them into few large ones and begin each as soon as its input is ready, with async_op=True "
        "(DistributedDataParallel does both): collectives then travel while the rest is computed.",
        Place(first.file, first.line, "", first.layer, first.operation),
        gain_ns=gain_ns,
        device_gain_ns=0,
        total_ns=total_ns,
        evidence={
            "collectives": count,
            "runs": len(runs),
            "exposed_ns": exposed_ns,
            "remaining_ns": sum(run.remaining_ns for run in runs),
            "bytes": sum(run.byte_count for run in runs),
            "rank": rank,
        },
    )
