"""The statement that calls the model: where what a finding is about begins, outside of modules."""

from __future__ import annotations

import libcst as cst

from neuron_profile.fix.proposal import Request
from neuron_profile.fix.source import Source

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
