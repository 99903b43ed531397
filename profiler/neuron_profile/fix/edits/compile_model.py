"""Many small operations become one: the model is compiled."""

from __future__ import annotations

import libcst as cst

from neuron_profile.fix.edits.call_sites import assignment_above, call_site
from neuron_profile.fix.proposal import Edit, Request
from neuron_profile.fix.source import Source, dotted, followed_by, replaced_by, statement

TITLE, FUNCTION_TITLE = "Compile the model", "Compile the function"
_UNFIT = frozenset({"backward", "step", "zero_grad", "item", "cpu", "numpy", "tolist", "to"})
TOLERANCE = 1e-3


def edit(request: Request) -> Edit | None:
    """Compiles the model that the loop calls, or else the function in which the line stands."""
    source = Source(request.text)
    is_compiled = any(dotted(node) == "torch.compile" for node in source.nodes(cst.Attribute))
    if is_compiled or not source.imports("torch"):
        return None
    return _model(source, request) or _function(source, request.finding.place.line)


def _model(source: Source, request: Request) -> Edit | None:
    """Puts `MODEL = torch.compile(MODEL)` behind the assignment of the model that the loop calls."""
    site = call_site(source, request)
    if site is None:
        return None
    for call in source.nodes(cst.Call, site):
        name = dotted(call.func)
        made = assignment_above(source, site, name)
        if made is not None:
            added = statement(f"{name} = torch.compile({name})")
            return Edit(TITLE, source.edited({made: followed_by(added)}), TOLERANCE)
    return None


def _function(source: Source, line: int) -> Edit | None:
    """Decorates a function of the module that only computes."""
    place = source.statement_at(line)
    function = source.scope(place) if place else None
    if (
        not isinstance(function, cst.FunctionDef)
        or function.decorators
        or not source.only_computes(function, _UNFIT)
    ):
        return None
    if not isinstance(source.parent(function), cst.Module):
        return None
    decorated = function.with_changes(decorators=[cst.Decorator(cst.parse_expression("torch.compile"))])
    return Edit(FUNCTION_TITLE, source.edited({function: replaced_by(decorated)}), TOLERANCE)
