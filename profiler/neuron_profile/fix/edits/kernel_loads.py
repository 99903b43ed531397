"""An NKI kernel loads once, before its loop, what every iteration loads again."""

from __future__ import annotations

import libcst as cst

from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.fix.edits.kernel_text import Loop, is_call, kernel_loop, makes_tile, writes
from neuron_profile.fix.proposal import Edit
from neuron_profile.fix.source import Source, dotted, keyword, of_statement, preceded_by, removed

TITLE = "Load it once, before the loop"


@of_statement
def edit(source: Source, line: cst.SimpleStatementLine, finding: Finding) -> Edit | None:
    """Moves the copy, and the tile that it fills, before the outermost loop that changes neither."""
    if not is_call(line, "dma_copy"):
        return None
    call = next(source.nodes(cst.Call, line))
    target, moved_from = keyword(call, ("dst",)), keyword(call, ("src",))
    if target is None or moved_from is None or not dotted(target.value):
        return None
    loop = kernel_loop(source, line)
    made = makes_tile(source, loop, dotted(target.value)) if loop is not None else None
    if loop is None or made is None or len(list(writes(source, loop, dotted(target.value)))) != 1:
        return None
    if not _is_same_each_time(source, loop, moved_from.value) or not _is_same_each_time(source, loop, made):
        return None
    if any(_is_written(source, loop, name.value) for name in source.nodes(cst.Name, moved_from.value)):
        return None
    moved = [each.with_changes(leading_lines=()) for each in (made, line)]
    before = preceded_by(*moved)
    return Edit(TITLE, source.edited({made: removed, line: removed, loop: before}), 0.0)


def _is_written(source: Source, loop: Loop, name: str) -> bool:
    """Whether the loop changes what a tensor holds, which the next iteration would have to load."""
    return next(writes(source, loop, name), None) is not None


def _is_same_each_time(source: Source, loop: Loop, node: cst.CSTNode) -> bool:
    """Whether a node reads no name that the loop gives a value, other than the tile's own."""
    own = {dotted(target.target) for assign in source.nodes(cst.Assign, node) for target in assign.targets}
    targets = [each.target for each in source.nodes(cst.AssignTarget, loop)]
    targets += [each.target for each in source.nodes(cst.For, loop)]
    targets += [each.target for each in source.nodes(cst.AugAssign, loop)]
    changed = {name.value for target in targets for name in source.nodes(cst.Name, target)} - own
    return all(name.value not in changed for name in source.nodes(cst.Name, node))
