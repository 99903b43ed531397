"""What is the same in every iteration goes before the loop."""

from __future__ import annotations

import libcst as cst

from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.fix.proposal import Edit
from neuron_profile.fix.source import LOOPS, Source, of_statement, preceded_by, removed

TITLE = "Do it once, before the loop"


@of_statement
def edit(source: Source, line: cst.SimpleStatementLine, finding: Finding) -> Edit | None:
    """Moves the statement before the outermost loop for which it gives the same."""
    for above in source.ancestors(line):
        if isinstance(above, LOOPS) and source.lines(above)[0] == finding.evidence.get("loop_line"):
            moved = line.with_changes(leading_lines=())
            return Edit(TITLE, source.edited({line: removed, above: preceded_by(moved)}), 0.0)
    return None
