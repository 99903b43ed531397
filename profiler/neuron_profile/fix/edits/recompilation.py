"""What is compiled again for every size or number is compiled once for all."""

from __future__ import annotations

import libcst as cst

from neuron_profile.fix.proposal import Edit, Request
from neuron_profile.fix.source import Source, dotted, keyword, replaced_by, with_argument

STATIC = ("static_argnums", "static_argnames")
TRACED, DYNAMIC = "Pass the changing number as an array", "Compile for changing sizes"


def edit(request: Request) -> Edit | None:
    """Takes `static_argnums` out of the only `jax.jit` with it, or makes the only `torch.compile` dynamic."""
    source = Source(request.text)
    return _traced(source) or _dynamic(source)


def _traced(source: Source) -> Edit | None:
    calls = [call for call in source.nodes(cst.Call) if keyword(call, STATIC) is not None]
    if len(calls) != 1 or "jit" not in source.module.code_for_node(calls[0]):
        return None
    (call,) = calls
    rest = [arg for arg in call.args if arg is not keyword(call, STATIC)]
    rest = [*rest[:-1], rest[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)] if rest else []
    new: cst.BaseExpression = call.with_changes(args=rest)
    if dotted(call.func).split(".")[-1] == "partial" and len(rest) == 1:
        new = rest[0].value
    return Edit(TRACED, source.edited({call: replaced_by(new)}), 1e-3)


def _dynamic(source: Source) -> Edit | None:
    uses = [node for node in source.nodes(cst.Attribute) if dotted(node) == "torch.compile"]
    if len(uses) != 1:
        return None
    (use,) = uses
    call = source.parent(use)
    if isinstance(call, cst.Call) and call.func is use:
        if keyword(call, ("dynamic",)) is not None:
            return None
        return Edit(DYNAMIC, source.edited({call: replaced_by(_made_dynamic(call))}))
    return Edit(DYNAMIC, source.edited({use: replaced_by(_made_dynamic(cst.Call(use)))}))


def _made_dynamic(call: cst.Call) -> cst.Call:
    return with_argument(call, "dynamic", cst.Name("True"))
