"""A cast that is made again and again: before the loop once, or not at all."""

from __future__ import annotations

import libcst as cst

from neuron_profile.analysis.upcast_sources import UPCASTS, WIDE
from neuron_profile.fix.edits import hoist
from neuron_profile.fix.edits.upcasts import NARROW, bare, is_cast, needs_parentheses, without_cast
from neuron_profile.fix.proposal import Edit, Request
from neuron_profile.fix.source import Source, dotted

TITLE = "Compute in the type that the tensors have"
TOLERANCE = 2e-2  # bf16 keeps eight bits


def edit(request: Request) -> Edit | None:
    """Takes the casts to fp32 and back out of a statement; one that a loop repeats goes before the loop."""
    if "loop_line" in request.finding.evidence:
        return hoist.edit(request)
    source = Source(request.text)
    line = source.statement_at(request.finding.place.line)
    calls = list(source.nodes(cst.Call, line)) if line is not None else []
    wide = [call for call in calls if is_cast(call, UPCASTS, WIDE)]
    back = [call for call in calls if is_cast(call, NARROW, NARROW) or _as_another(call)]
    if not wide or not back:
        return None
    changes = {call: without_cast if needs_parentheses(source, call) else bare for call in (*wide, *back)}
    return Edit(TITLE, source.edited(changes), TOLERANCE)


def _as_another(call: cst.Call) -> bool:
    """Whether a call is `.to(x.dtype)` or `.type_as(x)`."""
    if not isinstance(call.func, cst.Attribute) or len(call.args) != 1:
        return False
    name, argument = call.func.attr.value, dotted(call.args[0].value)
    return name == "type_as" or (name == "to" and argument.endswith(".dtype"))
