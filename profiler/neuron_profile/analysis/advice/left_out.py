"""Lines of loops and functions that need not run each time: what they do, what leaving them out gives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.advice.line_calls import (
    LineCalls,
    calls_in_functions,
    calls_in_loops,
    copies_in_loops,
)
from neuron_profile.analysis.whatif.replay import Spans
from neuron_profile.reports.quantities import count

MINIMUM_SHARE = 0.01
SET_UP_ONCE = (
    "Do it once, where the module is made (in __init__, with register_buffer, so that it moves with the "
    "module), or outside of the function, and use what was kept."
)
_CASTS = frozenset({"to", "type", "float", "half", "bfloat16", "double"})
_LAYOUTS = frozenset(
    {"t", "transpose", "permute", "contiguous", "reshape", "view", "flatten", "unflatten", "clone", "mT", "T"}
)


class Kind(Enum):
    """What a line does each time."""

    COPY = "copies to the device"
    CAST = "casts"
    LAYOUT = "brings into another layout"
    COMPUTATION = "computes"


def kind_of(line: LineCalls) -> Kind:
    """What a line does; a copy to the device outweighs what is done with it."""
    if any(call.is_copy for call in line.calls):
        return Kind.COPY
    if line.source.methods and line.source.methods <= _CASTS:
        return Kind.CAST
    if line.source.methods and line.source.methods <= _LAYOUTS:
        return Kind.LAYOUT
    return Kind.COMPUTATION


def invariant(context: Context, rule: str, kind: Kind, title: str, change: str) -> Iterator[Finding]:
    """A finding per line of a loop, and per function, that does the same each time: the gain is that of doing
    it once, as often as the loop begins; in a function, once for each module.

    Args:
        title: With `{name}` and `{times}`.
        change: What to do in a loop.
    """
    for line in calls_in_loops(context):
        if line.source.invariant and not line.source.unused and kind_of(line) is kind:
            yield from _without(context, rule, line, line.spans(keep_first=True), title, change)
    functions: defaultdict[tuple[str, int], list[LineCalls]] = defaultdict(list)
    for line in calls_in_functions(context):
        if line.source.invariant:
            functions[line.file, line.source.loop_line].append(line)
    for lines in functions.values():
        costliest = _costliest(context, lines)
        if kind_of(costliest) is kind:
            spans = np.concatenate([line.spans(keep_first=True) for line in lines])
            yield from _without(context, rule, costliest, spans, title, SET_UP_ONCE)


def invariant_copies(context: Context, rule: str, title: str, change: str) -> Iterator[Finding]:
    """A finding per line of a loop that copies the same each time inside an expression.

    Args:
        title: With `{name}` and `{times}`.
        change: What to do.
    """
    for line in copies_in_loops(context):
        for finding in _without(context, rule, line, line.spans(keep_first=True), title, change):
            evidence = {name: value for name, value in finding.evidence.items() if name != "loop_line"}
            yield replace(finding, evidence=evidence)  # the line itself has to stay where it is


def unused(context: Context, rule: str, title: str, change: str) -> Iterator[Finding]:
    """A finding per line whose result nobody reads: the gain is that of leaving it out."""
    for line in (*calls_in_loops(context), *calls_in_functions(context)):
        if line.source.unused:
            yield from _without(context, rule, line, line.spans(keep_first=False), title, change)


def _costliest(context: Context, lines: Sequence[LineCalls]) -> LineCalls:
    """The line of those of one function that takes most of the program's time."""
    what_if = context.what_if
    if what_if is None or len(lines) == 1:
        return lines[0]
    return min(lines, key=lambda line: what_if.without_spans_ns(line.spans(keep_first=True)))


def _without(
    context: Context, rule: str, line: LineCalls, spans: Spans, title: str, change: str
) -> Iterator[Finding]:
    what_if = context.what_if
    if what_if is None:
        return
    total_ns = what_if.recorded_ns()
    gain_ns = total_ns - what_if.without_spans_ns(spans)
    if gain_ns >= MINIMUM_SHARE * total_ns:
        yield Finding(
            rule,
            title.format(name=line.source.name, times=count(line.times, "time")),
            change,
            Place(line.file, line.source.line),
            gain_ns=gain_ns,
            total_ns=total_ns,
            evidence={
                "times": line.times,
                "calls": len(line.calls),
                "host_ns": int((spans[:, 2] - spans[:, 1]).sum()),
                "loop_line": line.source.loop_line,
            },
        )
