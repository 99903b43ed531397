"""A function of a JAX program is computed operation by operation: `jax.jit` would make it one launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.advice.fused_times import fused_ns, joined_gain_ns
from neuron_profile.analysis.advice.line_calls import Call, PlacedCall, calls_in_order, repetitions, spans_of
from neuron_profile.analysis.jax_functions import is_single_operation
from neuron_profile.analysis.own_lines import load_own_lines
from neuron_profile.analysis.source_frames import SourceFrame, load_frames, stack

MINIMUM_SHARE = 0.01
MINIMUM_RUNS = 3
MINIMUM_CALLS = 4
"""Operations of one run, fewer than which are no function that somebody forgot to compile."""
MOST_OF_IT = 0.8
"""Part of the largest gain that makes an inner function the one to compile."""
_READS = """
SELECT coalesce(process_idx, 0) AS process, start_ts AS start_ns FROM HostSpan
WHERE kind = 'synchronize' OR (kind = 'copy' AND name NOT LIKE '%to_device%') ORDER BY start_ns
"""


Times = npt.NDArray[np.int64]


class Site(NamedTuple):
    """A line of the user's own that calls what is computed operation by operation.

    Attributes:
        function: What it calls; "" of the line that computes itself.
    """

    file: str
    line: int
    function: str


def find(context: Context) -> Iterator[Finding]:
    """A finding for the innermost function that gains most of what compiling gains at all.

    Its runs read no values of the device. The gain is that of one launch for each run, in which the engines
    overlap and values stay on the chip.
    """
    if context.what_if is None or not any(_is_single(context).values()):
        return
    gains = {site: (runs, _gain_ns(context, runs)) for site, runs in _sites(context).items()}
    largest_ns = max((gain_ns for _, gain_ns in gains.values()), default=0)
    total_ns = context.what_if.recorded_ns()
    if largest_ns < max(MINIMUM_SHARE * total_ns, 1):
        return
    enough = [site for site, (_, gain_ns) in gains.items() if gain_ns >= MOST_OF_IT * largest_ns]
    site = min(enough, key=lambda each: (sum(map(len, gains[each][0])), each))
    yield _finding(site, *gains[site], total_ns)


def _finding(site: Site, runs: Sequence[Sequence[Call]], gain_ns: int, total_ns: int) -> Finding:
    what = site.function or "This line"
    launches = sum(map(len, runs))
    return Finding(
        "missing_jit",
        f"{what} is computed operation by operation: {launches:,} launches and copies",
        f"Compile {site.function or 'it, as a function'} with jax.jit: one launch for all of a call, and "
        "values in between stay on the chip.",
        Place(site.file, site.line),
        gain_ns=gain_ns,
        total_ns=total_ns,
        evidence={"runs": len(runs), "launches": launches, "function": site.function},
    )


def _is_single(context: Context) -> Mapping[tuple[int, int], bool]:
    """Whether each program is one operation of JAX."""
    return {use.key: is_single_operation(use.program) for use in context.programs}


def _gain_ns(context: Context, runs: Sequence[Sequence[Call]]) -> int:
    return joined_gain_ns(context, runs, fused_ns(context, runs))


def _sites(context: Context) -> dict[Site, list[list[Call]]]:
    """The sites that could be compiled, with the calls of each of their runs."""
    calls = calls_in_order(context)
    single = _launching_single(context, calls)
    above = _sites_above(context, {placed.stack for placed in calls})
    reads = _reads(context)
    found: dict[Site, list[list[Call]]] = {}
    for site in sorted({site for number in single for site in above[calls[number].stack]}):
        runs = [run for run in _runs(calls, above, site) if not _is_any_in(reads, run)]
        of_single = [run for run in runs if len(run) >= MINIMUM_CALLS]
        if len(of_single) >= MINIMUM_RUNS:
            found[site] = of_single
    return found


def _launching_single(context: Context, calls: Sequence[PlacedCall]) -> AbstractSet[int]:
    """Positions of the calls that launched one operation."""
    assert context.what_if is not None
    assert context.executions is not None
    executions, is_single = context.executions, _is_single(context)
    launched = context.what_if.launching_spans(spans_of([placed.call for placed in calls]))
    keys = zip(executions.process.tolist(), executions.executable.tolist(), launched.tolist())
    return {call for process, number, call in keys if call >= 0 and is_single[process, number]}


def _sites_above(context: Context, leaves: AbstractSet[str]) -> dict[str, list[Site]]:
    """For each stack the lines of the user's own on it, each with the function that it calls."""
    frames, own = load_frames(context.profile), load_own_lines(context.profile)
    files = {leaf: own[leaf].place.file for leaf in leaves if leaf in own and own[leaf].is_own}
    return {
        leaf: list(_with_callees(stack(frames, leaf), files[leaf])) if leaf in files else []
        for leaf in leaves
    }


def _with_callees(frames: Sequence[SourceFrame], file: str) -> Iterator[Site]:
    """The frames of the user's file, from the innermost."""
    inner = ""
    for frame in frames:
        if frame.file == file:
            yield Site(frame.file, frame.line, inner)
            inner = frame.function


def _runs(
    calls: Sequence[PlacedCall], above: Mapping[str, Sequence[Site]], site: Site
) -> Iterator[list[Call]]:
    """The calls of each run of a site: what follows each other, in as many equal parts as it has."""
    for (_, is_own), group in groupby(
        calls, lambda placed: (placed.call.process, site in above[placed.stack])
    ):
        if is_own:
            run = [placed.call for placed in group]
            size = len(run) // repetitions([call.name for call in run])
            yield from (run[first : first + size] for first in range(0, len(run), size))


def _reads(context: Context) -> Mapping[int, Times]:
    """When each process reads values of the device, or waits for it."""
    rows = context.profile.query(_READS).to_pylist()
    processes = {row["process"] for row in rows}
    return {
        process: np.array([row["start_ns"] for row in rows if row["process"] == process], np.int64)
        for process in processes
    }


def _is_any_in(reads: Mapping[int, Times], run: Sequence[Call]) -> bool:
    """Whether values are read between the first and the last call of a run."""
    times = reads.get(run[0].process, np.zeros(0, np.int64))
    first, last = np.searchsorted(times, (run[0].start_ns, run[-1].end_ns))
    return bool(last > first)
