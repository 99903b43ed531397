"""A function of a JAX program that runs operation by operation is compiled."""

from __future__ import annotations

import libcst as cst

from neuron_profile.fix.proposal import Edit, Request
from neuron_profile.fix.source import Source, replaced_by

TITLE = "Compile the function"
DECORATOR = "jax.jit"
_UNFIT = frozenset({"item", "tolist", "block_until_ready"})
TOLERANCE = 2e-2
"""XLA joins operations of a compiled function, which rounds less often: in bf16 that can be seen."""


def edit(request: Request) -> Edit | None:
    """Decorates the function that the line calls, where the file defines it once and it only computes."""
    source = Source(request.text)
    name = str(request.finding.evidence.get("function", "")).rpartition(".")[2]
    defined = [node for node in source.nodes(cst.FunctionDef) if node.name.value == name]
    if len(defined) != 1 or defined[0].decorators or not source.imports("jax"):
        return None
    if source.scope(defined[0]) is not None or not source.only_computes(defined[0], _UNFIT):
        return None
    decorated = defined[0].with_changes(decorators=[cst.Decorator(cst.parse_expression(DECORATOR))])
    return Edit(TITLE, source.edited({defined[0]: replaced_by(decorated)}), TOLERANCE)
