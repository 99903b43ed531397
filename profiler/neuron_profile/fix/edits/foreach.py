"""Parameters are updated together: by the optimizer's own switches, or by one call in the place of a loop."""

from __future__ import annotations

import libcst as cst

from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.fix.proposal import Edit
from neuron_profile.fix.source import (
    Source,
    dotted,
    keyword,
    of_statement,
    replaced_by,
    statement,
    with_argument,
)

TITLE = "Update all parameters together"


@of_statement
def edit(source: Source, line: cst.SimpleStatementLine, finding: Finding) -> Edit | None:
    """Gives the optimizer `foreach=True`, or makes one call of a loop of `p -= rate * p.grad`.

    What is updated together already, in several passes, gets `fused=True`.
    """
    switch, other = ("fused", "foreach") if "operators" in finding.evidence else ("foreach", "fused")
    return _switched(source, line.body[0], switch, other) or _without_loop(source, line)


def _switched(source: Source, small: cst.BaseSmallStatement, switch: str, other: str) -> Edit | None:
    """The only optimizer of the step's name, with the switch in the place of the other."""
    call = small.value if isinstance(small, (cst.Expr, cst.Assign)) else None
    function = call.func if isinstance(call, cst.Call) else None
    if not isinstance(function, cst.Attribute) or function.attr.value != "step":
        return None
    name = dotted(function.value)
    made = [
        each.value
        for each in source.nodes(cst.Assign)
        if [dotted(target.target) for target in each.targets] == [name] and isinstance(each.value, cst.Call)
    ]
    if len(made) != 1 or "optim" not in dotted(made[0].func):
        return None
    kept = [arg for arg in made[0].args if arg is not keyword(made[0], (other,))]
    together = with_argument(made[0].with_changes(args=kept), switch, cst.Name("True"))
    return Edit(TITLE, source.edited({made[0]: replaced_by(together)}))


def _without_loop(source: Source, line: cst.SimpleStatementLine) -> Edit | None:
    block = source.parent(line)
    loop = source.parent(block) if block is not None else None
    small = line.body[0]
    if not isinstance(loop, cst.For) or not isinstance(small, cst.AugAssign) or not source.imports("torch"):
        return None
    name, over = dotted(loop.target), source.module.code_for_node(loop.iter)
    sign = {cst.SubtractAssign: "-", cst.AddAssign: ""}.get(type(small.operator))
    rate = _rate(source, small.value, f"{name}.grad")
    if not name or dotted(small.target) != name or sign is None or rate is None or len(loop.body.body) != 1:
        return None
    together = f"torch._foreach_add_(list({over}), [{name}.grad for {name} in {over}], alpha={sign}{rate})"
    new = statement(together).with_changes(leading_lines=loop.leading_lines)
    return Edit(TITLE, source.edited({loop: replaced_by(new)}))


def _rate(source: Source, value: cst.BaseExpression, gradient: str) -> str | None:
    """What the gradient is multiplied by, a number or a name; None of anything else."""
    if not isinstance(value, cst.BinaryOperation) or not isinstance(value.operator, cst.Multiply):
        return None
    for rate, other in ((value.left, value.right), (value.right, value.left)):
        if dotted(other) == gradient and (isinstance(rate, (cst.Float, cst.Integer)) or dotted(rate)):
            return str(source.module.code_for_node(rate))
    return None
