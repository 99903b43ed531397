"""Reads of the device's values in a loop become one read behind it."""

from __future__ import annotations

import libcst as cst

from neuron_profile.fix.proposal import Edit, Request
from neuron_profile.fix.source import Change, Source, followed_by, replaced_by, statement

TITLE = "Read the values once, behind the loop"
SUM_TOLERANCE = 1e-3  # a sum in fp32 on the device, in float64 on the host


def edit(request: Request) -> Edit | None:
    """`NAMES.append(X.item())` and `NAME += X.item()` keep X on the device until the loop is over."""
    source = Source(request.text)
    line = source.statement_at(request.finding.place.line)
    loop = source.outermost_loop(line) if line is not None else None
    if line is None or loop is None or not source.imports("torch"):
        return None
    for call in source.nodes(cst.Call, line):
        value = _read_value(call)
        if value is not None:
            found = _appended(source, loop, call, value) or _added(source, loop, call, value)
            if found is not None:
                changes, tolerance = found
                return Edit(TITLE, source.edited(changes), tolerance)
    return None


def _read_value(call: cst.Call) -> cst.BaseExpression | None:
    """X of `X.item()`."""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "item" and not call.args:
        return call.func.value
    return None


Found = tuple[dict[cst.CSTNode, Change], float]


def _appended(source: Source, loop: cst.CSTNode, call: cst.Call, value: cst.BaseExpression) -> Found | None:
    """Of `NAMES.append(X.item())`, where NAMES is empty before the loop and not read in it."""
    argument = source.parent(call)
    append = source.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(append, cst.Call) or not isinstance(append.func, cst.Attribute):
        return None
    names = append.func.value
    if append.func.attr.value != "append" or not isinstance(names, cst.Name):
        return None
    if source.names(names.value, loop) != 1 or not _begins_empty(source, loop, names.value):
        return None
    kept = _method(_method(value, "detach"), "clone")
    after = statement(f"{names.value} = torch.stack({names.value}).tolist() if {names.value} else []")
    return {call: replaced_by(kept), loop: followed_by(after)}, 0.0


def _begins_empty(source: Source, loop: cst.CSTNode, name: str) -> bool:
    """Whether the last assignment to a name above the loop is an empty list."""
    above = [
        node
        for node in source.nodes(cst.Assign)
        if source.lines(node)[0] < source.lines(loop)[0]
        and any(isinstance(t.target, cst.Name) and t.target.value == name for t in node.targets)
    ]
    return bool(above) and isinstance(above[-1].value, cst.List) and not above[-1].value.elements


def _added(source: Source, loop: cst.CSTNode, call: cst.Call, value: cst.BaseExpression) -> Found | None:
    """Of `NAME += X.item()`, where NAME is not read in the loop."""
    added = source.parent(call)
    if not isinstance(added, cst.AugAssign) or not isinstance(added.operator, cst.AddAssign):
        return None
    if not isinstance(added.target, cst.Name) or source.names(added.target.value, loop) != 1:
        return None
    name = added.target.value
    after = statement(f"{name} = torch.as_tensor({name}).item()")
    return {call: replaced_by(_method(value, "detach")), loop: followed_by(after)}, SUM_TOLERANCE


def _method(value: cst.BaseExpression, name: str) -> cst.Call:
    return cst.Call(cst.Attribute(value, cst.Name(name)))
