"""Rows that are computed one by one are computed as the batch that they come from."""

from __future__ import annotations

import libcst as cst

from neuron_profile.fix.proposal import Edit, Request
from neuron_profile.fix.source import Source, dotted, keyword, replaced_by

TITLE = "Compute the whole batch at once"
TOLERANCE = 1e-2


def edit(request: Request) -> Edit | None:
    """Turns `torch.stack([f(row) for row in rows])` at the line into `f(rows)`."""
    source, line = Source(request.text), request.finding.place.line
    for call in source.nodes(cst.Call):
        first, last = source.lines(call)
        if first <= line <= last and dotted(call.func) == "torch.stack" and _joins_first(call):
            value = _of_the_batch(source, call.args[0].value)
            if value is not None:
                return Edit(TITLE, source.edited({call: replaced_by(value)}), TOLERANCE)
    return None


def _joins_first(call: cst.Call) -> bool:
    """Whether the rows are joined along the first dimension."""
    dim = keyword(call, ("dim",))
    if len(call.args) == 1:
        return True
    return (
        len(call.args) == 2
        and dim is not None
        and isinstance(dim.value, cst.Integer)
        and dim.value.value == "0"
    )


def _of_the_batch(source: Source, values: cst.BaseExpression) -> cst.BaseExpression | None:
    """The comprehension's value with all rows in the place of one."""
    if not isinstance(values, (cst.ListComp, cst.GeneratorExp)):
        return None
    loop = values.for_in
    simple = (
        isinstance(loop.target, cst.Name) and dotted(loop.iter) and not loop.ifs and not loop.inner_for_in
    )
    if not simple or not isinstance(values.elt, cst.Call):
        return None
    name = dotted(loop.target)
    uses = [node for node in source.nodes(cst.Name, values.elt) if node.value == name]
    if len(uses) != 1 or not any(arg.value is uses[0] for arg in values.elt.args):
        return None
    batched: cst.BaseExpression = values.elt.deep_replace(uses[0], loop.iter)
    return batched
