"""The statement that calls the model: where what a finding is about begins, outside of modules."""

from __future__ import annotations

import libcst as cst

from neuron_profile.fix.proposal import Request
from neuron_profile.fix.source import Source, dotted

INSIDE_MODULES = ("forward", "__call__")


def call_site(source: Source, request: Request) -> cst.SimpleStatementLine | None:
    """The innermost statement outside of `forward` that the finding's operations were reached through."""
    place = request.finding.place
    lines = [site.line for site in request.sites if not _is_inside(site.function)]
    if not request.sites and not _is_inside(place.function):
        lines = [place.line]
    found = source.statement_at(lines[0]) if lines else None
    return found if found is not None and any(source.nodes(cst.Call, found)) else None


def _is_inside(function: str) -> bool:
    """Whether a function is a module's own; "Block.forward" is."""
    return function.rpartition(".")[2] in INSIDE_MODULES


def assignment_above(source: Source, site: cst.CSTNode, name: str) -> cst.SimpleStatementLine | None:
    """The last `NAME = something(...)` above the loop around the call, outside of any loop."""
    loop = source.outermost_loop(site)
    if loop is None or not name.isidentifier():
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
