"""Many executions of a few microseconds: most of their time is launching."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from itertools import groupby

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.advice.fused_times import fused_ns
from neuron_profile.analysis.advice.line_calls import Call, PlacedCall, calls_in_order, repetitions, spans_of
from neuron_profile.analysis.jax_functions import is_single_operation
from neuron_profile.analysis.source_frames import SourceLine
from neuron_profile.reports.quantities import duration
from neuron_tools.arrays import Mask

Line = tuple[str, int]
TINY_NS = 10_000
MINIMUM_COUNT = 100


def find(context: Context) -> Iterator[Finding]:
    """A finding where at least a hundred executions take at most 10 us each, at the line with most of them.

    The gain is that of one launch for all that the line launches in a step, and one for its backward pass.
    """
    executions = context.executions
    if executions is None or context.what_if is None:
        return
    durations = executions.end_ns - executions.start_ns
    tiny = (durations <= TINY_NS) & ~_of_jax(context)
    count = int(np.count_nonzero(tiny))
    if count < MINIMUM_COUNT or count < len(executions) / 2:
        return
    total_ns = context.what_if.recorded_ns()
    (file, line), groups = _busiest_line(context, tiny)
    together = [call for group in groups for call in group[:-1]]
    if not together:  # each run of the line launches one thing already
        return
    launch_ns = round(executions.core.launch_overhead_ns)
    yield Finding(
        "tiny_operations",
        f"{count:,} executions take at most {duration(TINY_NS)} each, less than launching them "
        f"({duration(launch_ns)})",
        "Compile the step (torch.compile, jax.jit): one launch for all, and intermediate values stay "
        "on the chip.",
        Place(file, line),
        gain_ns=total_ns - context.what_if.without_spans_ns(spans_of(together), fused_ns(context, groups)),
        device_gain_ns=0,
        total_ns=total_ns,
        evidence={"executions": count, "median_ns": int(np.median(durations[tiny])), "launch_ns": launch_ns},
    )


def _of_jax(context: Context) -> Mask:
    """(executions,) single operations of JAX, which `missing_jit` tells."""
    assert context.executions is not None
    found = np.zeros(len(context.executions), bool)
    for use in context.programs:
        if is_single_operation(use.program):
            found[context.executions.of_program(use.key)] = True
    return found


def _busiest_line(context: Context, chosen: Mask) -> tuple[Line, list[list[Call]]]:
    """The user's own line that launched most of the chosen executions; what it launched run by run."""
    assert context.what_if is not None
    calls = calls_in_order(context)
    launched_in = context.what_if.launching_spans(spans_of([placed.call for placed in calls]))
    launched = np.flatnonzero(chosen & (launched_in >= 0)).tolist()
    lines = {int(launched_in[each]): _own_line(context, each, calls[launched_in[each]]) for each in launched}
    counts = Counter(line for line in lines.values() if line[0])
    busiest = min(counts, key=lambda line: (-counts[line], line), default=("", 0))
    own = {number for number, line in lines.items() if line == busiest}
    return busiest, list(_runs(calls, own)) if busiest[0] else []


def _own_line(context: Context, execution: int, placed: PlacedCall) -> Line:
    """The line that made a call; for one of autograd's thread, the line that it was recorded for."""
    if placed.file:
        return placed.file, placed.line
    assert context.executions is not None
    for origin in context.executions.origins(execution):
        caller = context.callers.get(SourceLine(origin.file, origin.line))
        return (caller.place.file, caller.place.line) if caller else (origin.file, origin.line)
    return "", 0


def _runs(calls: Sequence[PlacedCall], own: Set[int]) -> Iterator[list[Call]]:
    """Chosen calls run by run: those of the line itself, and what autograd launches for them in between."""

    def kind(numbered: tuple[int, PlacedCall]) -> tuple[int, bool, bool]:
        number, placed = numbered
        return placed.call.process, number in own, bool(placed.file)

    for (_, is_own, is_forward), group in groupby(enumerate(calls), kind):
        if is_own:
            run = [placed.call for _, placed in group]
            size = len(run) // repetitions([call.name for call in run]) if is_forward else len(run)
            yield from (run[first : first + size] for first in range(0, len(run), size))
