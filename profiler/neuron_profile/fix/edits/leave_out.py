"""A result that nobody reads is not computed."""

from __future__ import annotations

import libcst as cst

from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.fix.proposal import Edit
from neuron_profile.fix.source import Source, of_statement, removed, replaced_by

TITLE = "Leave out what nobody reads"


@of_statement
def edit(source: Source, line: cst.SimpleStatementLine, finding: Finding) -> Edit | None:
    """Takes the statement out, where others stand beside it; a name that is handed on stands for nothing."""
    handed_on = _handed_on(source, line)
    if handed_on is not None:
        nothing = handed_on.with_changes(value=cst.Name("None"))
        return Edit(TITLE, source.edited({handed_on: replaced_by(nothing)}), 0.0)
    block = source.parent(line)
    if not isinstance(block, cst.IndentedBlock) or len(block.body) < 2:
        return None
    return Edit(TITLE, source.edited({line: removed}), 0.0)


def _handed_on(source: Source, line: cst.SimpleStatementLine) -> cst.Assign | None:
    """The assignment of a line whose name its function mentions elsewhere: in what it returns, say."""
    assignment = line.body[0]
    if not isinstance(assignment, cst.Assign) or len(assignment.targets) != 1:
        return None
    target, scope = assignment.targets[0].target, source.scope(line) or source.module
    if not isinstance(target, cst.Name):
        return None
    is_mentioned = source.names(target.value, scope) > source.names(target.value, line)
    return assignment if is_mentioned else None
