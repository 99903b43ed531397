"""Each iteration of an NKI kernel's loop gets a tile of its own, so that loads run ahead."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.fix.edits.kernel_text import Loop, destination, is_call, kernel_loop, makes_tile
from neuron_profile.fix.proposal import Edit
from neuron_profile.fix.source import Change, Source, dotted, of_statement, removed, replaced_by

TITLE = "Give each iteration a tile of its own"


@of_statement
def edit(source: Source, line: cst.SimpleStatementLine, finding: Finding) -> Edit | None:
    """Moves the tile that the line loads from before the loop to the beginning of its body."""
    if not is_call(line, "dma_copy"):
        return None
    loop, name = kernel_loop(source, line), destination(next(source.nodes(cst.Call, line)))
    function = source.scope(line)
    if not name or not isinstance(loop, cst.For) or function is None:
        return None
    alias = _alias(source, loop, name)
    shared = dotted(cst.ensure_type(alias.body[0], cst.Assign).value) if alias is not None else name
    made = makes_tile(source, function, shared)
    if made is None or source.outermost_loop(made) is not None or not _is_free(source, made, loop, shared):
        return None
    if alias is not None:
        value = cst.ensure_type(made.body[0], cst.Assign).value
        renamed = cst.ensure_type(alias.body[0], cst.Assign).with_changes(value=value)
        own = alias.with_changes(body=[renamed])
        return Edit(TITLE, source.edited({made: removed, alias: replaced_by(own)}), 0.0)
    if not _loads_first(source, loop, line, name):
        return None
    return Edit(TITLE, source.edited({made: removed, loop: _begins_with(made)}), 0.0)


def _begins_with(made: cst.SimpleStatementLine) -> Change:
    def change(node: cst.CSTNode) -> cst.CSTNode:
        loop = cst.ensure_type(node, cst.For)
        inside = [made.with_changes(leading_lines=()), *loop.body.body]
        return loop.with_changes(body=loop.body.with_changes(body=inside))

    return change


def _alias(source: Source, loop: Loop, name: str) -> cst.SimpleStatementLine | None:
    """The statement `NAME = OTHER` in the loop, if that is how the name gets its value."""
    for line in source.nodes(cst.SimpleStatementLine, loop):
        small = line.body[0]
        if len(line.body) != 1 or not isinstance(small, cst.Assign) or not isinstance(small.value, cst.Name):
            continue
        if [dotted(target.target) for target in small.targets] == [name]:
            return line
    return None


def _is_free(source: Source, made: cst.SimpleStatementLine, loop: Loop, name: str) -> bool:
    """Whether a name is used nowhere but where it is made and in the loop."""
    function = source.scope(loop)
    assert function is not None
    used = source.names(name, function) - source.names(name, made)
    return used == source.names(name, loop) > 0


def _loads_first(source: Source, loop: Loop, line: cst.SimpleStatementLine, name: str) -> bool:
    """Whether each iteration begins with the load: nothing is kept from the one before."""
    first = next(_statements_with(source, loop, name), None)
    return first is line


def _statements_with(source: Source, loop: Loop, name: str) -> Iterator[cst.SimpleStatementLine]:
    return (each for each in source.nodes(cst.SimpleStatementLine, loop.body) if source.names(name, each))
