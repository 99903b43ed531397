"""A result that nobody reads is not computed."""

from __future__ import annotations

import libcst as cst

from neuron_profile.fix.proposal import Edit, Request
from neuron_profile.fix.source import Source, removed

TITLE = "Leave out what nobody reads"


def edit(request: Request) -> Edit | None:
    """Takes the statement out, where others stand beside it."""
    source = Source(request.text)
    line = source.statement_at(request.finding.place.line)
    if line is None or len(line.body) != 1:
        return None
    block = source.parent(line)
    if not isinstance(block, cst.IndentedBlock) or len(block.body) < 2:
        return None
    return Edit(TITLE, source.edited({line: removed}), 0.0)
