"""Many small operations become one: the model is compiled."""

from __future__ import annotations

import libcst as cst

from neuron_profile.fix.edits.call_sites import call_site
from neuron_profile.fix.proposal import Edit, Request
from neuron_profile.fix.source import Source, dotted, followed_by, statement

TITLE = "Compile the model"
TOLERANCE = 1e-3


def edit(request: Request) -> Edit | None:
    """Puts `MODEL = torch.compile(MODEL)` behind the assignment of the model that the loop calls."""
    source = Source(request.text)
    site = call_site(source, request)
    if site is None or not source.imports("torch") or "torch.compile" in request.text:
        return None
    for call in source.nodes(cst.Call, site):
        name = dotted(call.func)
        made = _assignment(source, site, name) if name.isidentifier() else None
        if made is not None:
            added = statement(f"{name} = torch.compile({name})")
            return Edit(TITLE, source.edited({made: followed_by(added)}), TOLERANCE)
    return None


def _assignment(source: Source, site: cst.CSTNode, name: str) -> cst.SimpleStatementLine | None:
    """The last `NAME = something(...)` above the loop around the call, outside of any loop."""
    loop = source.outermost_loop(site)
    if loop is None:
        return None
    found = None
    for line in source.nodes(cst.SimpleStatementLine):
        if source.lines(line)[0] >= source.lines(loop)[0] or source.outermost_loop(line) is not None:
            continue
        for small in line.body:
            if isinstance(small, cst.Assign) and isinstance(small.value, cst.Call):
                targets = [dotted(target.target) for target in small.targets]
                found = line if targets == [name] else found
    return found
