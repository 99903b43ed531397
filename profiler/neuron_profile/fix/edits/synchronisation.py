"""Reads of the device's values in a loop become one read behind it."""

from __future__ import annotations

import libcst as cst

from neuron_profile.fix.proposal import Edit, Request
from neuron_profile.fix.source import Change, Source, between, dotted, followed_by, replaced_by, statement

TITLE = "Read the values once, behind the loop"
AFTERWARDS = {
    "item": "{name} = torch.stack({name}).tolist() if {name} else []",
    "cpu": "{name} = list(torch.stack({name}).cpu()) if {name} else []",
}
"""What reads all values behind the loop, by the method that read each."""
SUM_TOLERANCE = 1e-6  # the same numbers are added up from 0, and then to what was there


def edit(request: Request) -> Edit | None:
    """`NAMES.append(X.item())` (or `X.cpu()`) and `NAME += X.item()` keep X until the loop is over."""
    source = Source(request.text)
    line = source.statement_at(request.finding.place.line)
    loop = source.outermost_loop(line) if line is not None else None
    if line is None or loop is None or not source.imports("torch"):
        return None
    for call in source.nodes(cst.Call, line):
        value = _read_value(call)
        if value is not None:
            found = _appended(source, loop, call, value)
            if found is None and _method_of(call) == "item":
                found = _added(source, loop, call, value)
            if found is not None:
                changes, tolerance = found
                return Edit(TITLE, source.edited(changes), tolerance)
    return None


def _read_value(call: cst.Call) -> cst.BaseExpression | None:
    """X of `X.item()` or `X.cpu()`."""
    return call.func.value if _method_of(call) in AFTERWARDS and not call.args else None


def _method_of(call: cst.Call) -> str:
    return str(call.func.attr.value) if isinstance(call.func, cst.Attribute) else ""


def _is_fresh(source: Source, loop: cst.CSTNode, value: cst.BaseExpression) -> bool:
    """Whether each iteration makes a tensor of its own: a call's result, or a name of nothing else."""
    if isinstance(value, cst.Subscript):
        value = value.value
    if isinstance(value, (cst.Call, cst.BinaryOperation)):
        return True
    if not isinstance(value, cst.Name):
        return False
    made = [
        node
        for node in source.nodes(cst.Assign, loop)
        if any(dotted(target.target) == value.value for target in node.targets)
    ]
    computed = all(isinstance(node.value, (cst.Call, cst.BinaryOperation)) for node in made)
    return bool(made) and computed and not _is_changed(source, loop, value.value)


def _is_changed(source: Source, loop: cst.CSTNode, name: str) -> bool:
    """Whether a loop changes a tensor in its place: `x += y`, `x[0] = y`, `x.add_(y)`."""
    if any(_root(node.target) == name for node in source.nodes(cst.AugAssign, loop)):
        return True
    if any(
        isinstance(target.target, (cst.Subscript, cst.Attribute)) and _root(target.target) == name
        for node in source.nodes(cst.Assign, loop)
        for target in node.targets
    ):
        return True
    return any(
        _method_of(call).endswith("_") and _root(call) == name for call in source.nodes(cst.Call, loop)
    )


def _root(node: cst.CSTNode) -> str:
    """The name that an attribute, a subscript or a call begins with."""
    while isinstance(node, (cst.Attribute, cst.Subscript, cst.Call)):
        node = node.func if isinstance(node, cst.Call) else node.value
    return dotted(node)


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
    kept = _kept(source, loop, value)
    after = statement(AFTERWARDS[_method_of(call)].format(name=names.value))
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
    values = f"{name}_values"
    if source.names(values, source.module):
        return None
    kept = _kept(source, loop, value)
    append = cst.Call(cst.Attribute(cst.Name(values), cst.Name("append")), [cst.Arg(kept)])
    after = statement(f"{name} += sum(torch.stack({values}).tolist()) if {values} else 0.0")
    around = between(statement(f"{values} = []"), after)
    return {added: replaced_by(cst.Expr(append)), loop: around}, SUM_TOLERANCE


def _kept(source: Source, loop: cst.CSTNode, value: cst.BaseExpression) -> cst.Call:
    """A tensor as it may be kept until later: copied, where the loop might change it."""
    kept = _method(value, "detach")
    return kept if _is_fresh(source, loop, value) else _method(kept, "clone")


def _method(value: cst.BaseExpression, name: str) -> cst.Call:
    return cst.Call(cst.Attribute(value, cst.Name(name)))
