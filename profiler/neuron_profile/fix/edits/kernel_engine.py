"""Two engines of an NKI kernel share its elementwise work, tile by tile."""

from __future__ import annotations

import libcst as cst

from neuron_profile.analysis.advice.rules.engine_imbalance import PARTS
from neuron_profile.fix.edits.kernel_text import Loop
from neuron_profile.fix.proposal import Edit, Request
from neuron_profile.fix.source import Change, Source, dotted, keyword, replaced_by, with_argument

TITLE = "Let two engines share the work"
TOLERANCE = 1e-2


def edit(request: Request) -> Edit | None:
    """Gives every so many tiles of the outermost loop at the line to the other engine."""
    source, evidence = Source(request.text), request.finding.evidence
    line = source.statement_at(request.finding.place.line)
    loop = source.outermost_loop(line) if line is not None else None
    turns = tuple(evidence.get("turns", ()))
    if line is None or not isinstance(loop, cst.For) or not dotted(loop.target) or not turns:
        return None
    call = next(source.nodes(cst.Call, line), None)
    if call is None or not _counts(loop):
        return None
    package, _, _ = dotted(call.func).rpartition(".")
    one, other = (f"{package}.{str(evidence[end]).lower()}_engine" for end in ("from", "to"))
    chosen = f"{other} if {dotted(loop.target)} % {PARTS} in {turns} else {one}"
    return _switched(source, call, loop, cst.parse_expression(chosen))


def _counts(loop: cst.For) -> bool:
    """Whether the loop counts tiles one by one: `range(N)`, or one of the language's ranges."""
    return (
        isinstance(loop.iter, cst.Call)
        and len(loop.iter.args) == 1
        and dotted(loop.iter.func).endswith("range")
    )


def _switched(source: Source, call: cst.Call, loop: Loop, chosen: cst.BaseExpression) -> Edit | None:
    """The call with its argument `engine`, or the name that stands there, set to the choice."""
    old = keyword(call, ("engine",))
    if old is not None and isinstance(old.value, cst.Name):
        made = [each for each in source.nodes(cst.Assign, loop) if _names(each) == [old.value.value]]
        if len(made) != 1:
            return None
        changed: dict[cst.CSTNode, Change] = {made[0]: replaced_by(made[0].with_changes(value=chosen))}
    else:
        changed = {call: replaced_by(with_argument(call, "engine", chosen))}
    return Edit(TITLE, source.edited(changed), TOLERANCE)


def _names(assign: cst.Assign) -> list[str]:
    return [dotted(target.target) for target in assign.targets]
