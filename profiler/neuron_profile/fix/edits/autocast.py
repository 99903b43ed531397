"""The forward pass runs under autocast, so that its products are in bf16."""

from __future__ import annotations

import libcst as cst

from neuron_profile.fix.edits.call_sites import call_site
from neuron_profile.fix.proposal import Edit, Request
from neuron_profile.fix.source import Source, replaced_by

TITLE = "Compute the forward pass in bf16"
CONTEXT = 'torch.autocast("neuron", torch.bfloat16)'
TOLERANCE = 2e-2  # bf16 keeps eight bits


def edit(request: Request) -> Edit | None:
    """Puts the statement that calls the model into `with torch.autocast(...)`."""
    source = Source(request.text)
    site = call_site(source, request)
    if site is None or not source.imports("torch") or _is_under_autocast(source, site):
        return None
    inside = site.with_changes(leading_lines=())
    with_ = cst.With(
        items=[cst.WithItem(cst.parse_expression(CONTEXT))],
        body=cst.IndentedBlock([inside]),
        leading_lines=site.leading_lines,
    )
    return Edit(TITLE, source.edited({site: replaced_by(with_)}), TOLERANCE)


def _is_under_autocast(source: Source, site: cst.CSTNode) -> bool:
    withs = (above for above in source.ancestors(site) if isinstance(above, cst.With))
    return any("autocast" in source.module.code_for_node(item) for above in withs for item in above.items)
