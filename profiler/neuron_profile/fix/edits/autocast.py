"""The forward pass runs under autocast, so that its products are in bf16."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import libcst as cst

from neuron_profile.fix.edits.call_sites import assignment_above, call_site
from neuron_profile.fix.proposal import Edit, Request
from neuron_profile.fix.source import (
    Change,
    Source,
    dotted,
    followed_by,
    keyword,
    replaced_by,
    statement,
    with_argument,
)

TITLE, ONCE_TITLE = "Compute the forward pass in bf16", "Keep the model in bf16"
OPERANDS_TITLE = "Keep the operands in bf16"
CONTEXT = 'torch.autocast("neuron", torch.bfloat16)'
_KNOWN_VALUES = frozenset({"torch.full", "torch.ones", "torch.zeros", "torch.eye"})
TOLERANCE = 2e-2  # bf16 keeps eight bits


def edit(request: Request) -> Edit | None:
    """Casts the model once where nothing is trained; else puts the call of the model under autocast.

    The operands of a product that the line itself writes are cast once, before the loop.
    """
    source = Source(request.text)
    product = _cast_operands(source, request.finding.place.line)
    if product is not None:
        return product
    site = call_site(source, request)
    if site is None or not source.imports("torch") or _is_under(source, site, ("autocast",)):
        return None
    return _cast_once(source, site) or _under_autocast(source, site)


def _under_autocast(source: Source, site: cst.SimpleStatementLine) -> Edit:
    """Puts the statement that calls the model into `with torch.autocast(...)`."""
    inside = site.with_changes(leading_lines=())
    with_ = cst.With(
        items=[cst.WithItem(cst.parse_expression(CONTEXT))],
        body=cst.IndentedBlock([inside]),
        leading_lines=site.leading_lines,
    )
    return Edit(TITLE, source.edited({site: replaced_by(with_)}), TOLERANCE)


def _cast_once(source: Source, site: cst.SimpleStatementLine) -> Edit | None:
    """Casts a model that takes one tensor, and the tensor: under autocast each call casts the weights."""
    if not _is_under(source, site, ("no_grad", "inference_mode")):
        return None
    for call in source.nodes(cst.Call, site):
        made = assignment_above(source, site, dotted(call.func))
        if made is not None and len(call.args) == 1 and dotted(call.args[0].value):
            name, tensor = dotted(call.func), dotted(call.args[0].value)
            narrow = call.args[0].with_changes(value=cst.parse_expression(f"{tensor}.to(torch.bfloat16)"))
            changes = {
                made: followed_by(statement(f"{name} = {name}.to(torch.bfloat16)")),
                call: replaced_by(call.with_changes(args=[narrow])),
            }
            return Edit(ONCE_TITLE, source.edited(changes), TOLERANCE)
    return None


def _cast_operands(source: Source, line: int) -> Edit | None:
    """Casts both operands of `NAME = A @ B` in a loop where each of them was made above it, once."""
    site = source.statement_at(line)
    small = site.body[0] if site is not None and len(site.body) == 1 else None
    if site is None or not isinstance(small, cst.Assign) or not isinstance(small.value, cst.BinaryOperation):
        return None
    loop, value = source.outermost_loop(site), small.value
    if loop is None or not isinstance(value.operator, cst.MatrixMultiply) or _trains(source):
        return None
    operands = dict.fromkeys((dotted(value.left), dotted(value.right)))
    made = {name: assignment_above(source, site, name) for name in operands}
    if not all(made.values()) or not source.imports("torch") or _others_change(source, loop, operands, small):
        return None
    changes = dict(_narrowed(name, line) for name, line in made.items() if line is not None)
    return Edit(OPERANDS_TITLE, source.edited(changes), TOLERANCE)


def _narrowed(name: str, made: cst.SimpleStatementLine) -> tuple[cst.CSTNode, Change]:
    """A tensor of known values is made in bf16; another is cast where it was made."""
    call = cst.ensure_type(cst.ensure_type(made.body[0], cst.Assign).value, cst.Call)
    if dotted(call.func) not in _KNOWN_VALUES or keyword(call, ("dtype", "out")) is not None:
        return made, followed_by(statement(f"{name} = {name}.to(torch.bfloat16)"))
    return call, replaced_by(with_argument(call, "dtype", cst.parse_expression("torch.bfloat16")))


def _trains(source: Source) -> bool:
    words = ("backward", "requires_grad", "grad", "Parameter")
    return any(name.value in words for name in source.nodes(cst.Name))


def _others_change(
    source: Source, loop: cst.CSTNode, names: Collection[str], but: cst.BaseSmallStatement
) -> bool:
    """Whether the loop gives one of the names another value: that one might be in fp32."""
    assigned = (each for each in source.nodes(cst.Assign, loop) if each is not but)
    return any(dotted(target.target) in names for each in assigned for target in each.targets)


def _is_under(source: Source, site: cst.CSTNode, names: Sequence[str]) -> bool:
    """Whether a statement runs under one of these contexts."""
    withs = (above for above in source.ancestors(site) if isinstance(above, cst.With))
    texts = [source.module.code_for_node(item) for above in withs for item in above.items]
    return any(name in text for name in names for text in texts)
