"""What is the same in every iteration goes before the loop."""

from __future__ import annotations

from neuron_profile.fix.proposal import Edit, Request
from neuron_profile.fix.source import LOOPS, Source, preceded_by, removed

TITLE = "Do it once, before the loop"


def edit(request: Request) -> Edit | None:
    """Moves the statement before the outermost loop for which it gives the same."""
    source = Source(request.text)
    line = source.lone_statement_at(request.finding.place.line)
    if line is None:
        return None
    for above in source.ancestors(line):
        if isinstance(above, LOOPS) and source.lines(above)[0] == request.finding.evidence.get("loop_line"):
            moved = line.with_changes(leading_lines=())
            return Edit(TITLE, source.edited({line: removed, above: preceded_by(moved)}), 0.0)
    return None
