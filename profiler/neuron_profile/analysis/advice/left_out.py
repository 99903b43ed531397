"""Lines of a loop that need not run each time: what they are called, and what leaving them out gives."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.advice.line_calls import LineCalls, calls_in_loops

MINIMUM_SHARE = 0.01
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
    """A finding per line of a loop that does the same each time: the gain is that of doing it once,
    as often as the loop begins.

    Args:
        title: With `{name}` and `{times}`.
    """
    for line in calls_in_loops(context):
        if line.source.invariant and not line.source.unused and kind_of(line) is kind:
            yield from _without(context, rule, line, True, title, change)


def unused(context: Context, rule: str, title: str, change: str) -> Iterator[Finding]:
    """A finding per line whose result nobody reads: the gain is that of leaving it out."""
    for line in calls_in_loops(context):
        if line.source.unused:
            yield from _without(context, rule, line, False, title, change)


def _without(
    context: Context, rule: str, line: LineCalls, keep_first: bool, title: str, change: str
) -> Iterator[Finding]:
    what_if = context.what_if
    if what_if is None:
        return
    spans, total_ns = line.spans(keep_first), what_if.recorded_ns()
    gain_ns = total_ns - what_if.without_spans_ns(spans)
    if gain_ns >= MINIMUM_SHARE * total_ns:
        yield Finding(
            rule,
            title.format(name=line.source.name, times=line.times),
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
