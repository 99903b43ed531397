"""The forward pass runs under autocast, so that its products are in bf16."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from neuron_profile.fix.edits.call_sites import assignment_above, call_site
from neuron_profile.fix.proposal import Edit, Request
from neuron_profile.fix.source import Source, dotted, followed_by, replaced_by, statement

TITLE, ONCE_TITLE = "Compute the forward pass in bf16", "Keep the model in bf16"
CONTEXT = 'torch.autocast("neuron", torch.bfloat16)'
TOLERANCE = 2e-2  # bf16 keeps eight bits


def edit(request: Request) -> Edit | None:
    """Casts the model once where nothing is trained; else puts the call of the model under autocast."""
    source = Source(request.text)
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


def _is_under(source: Source, site: cst.CSTNode, names: Sequence[str]) -> bool:
    """Whether a statement runs under one of these contexts."""
    withs = (above for above in source.ancestors(site) if isinstance(above, cst.With))
    texts = [source.module.code_for_node(item) for above in withs for item in above.items]
    return any(name in text for name in names for text in texts)
