"""A product takes its operands as they are, without casts to fp32 and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from neuron_profile.analysis.upcast_sources import PRODUCTS, UPCASTS, VIEWS, WIDE
from neuron_profile.fix.proposal import Edit, Request
from neuron_profile.fix.source import Change, Source, dotted

TITLE = "Multiply in the type that the tensors have"
TOLERANCE = 2e-2  # bf16 keeps eight bits
NARROW = frozenset({"bfloat16", "half", "float16"})


def edit(request: Request) -> Edit | None:
    """Takes the casts of a product's operands out, and that of its result."""
    source = Source(request.text)
    line = source.statement_at(request.finding.place.line)
    if line is None:
        return None
    changes: dict[cst.CSTNode, Change] = {}
    for product, found in _products(source, line):
        operands = list(map(_beneath_views, found))
        if all(is_cast(operand, UPCASTS, WIDE) for operand in operands):
            changes |= dict.fromkeys(operands, without_cast)
            cast = _cast_of(source, product)
            if cast is not None:
                changes[cast] = without_cast if needs_parentheses(source, cast) else bare
    return Edit(TITLE, source.edited(changes), TOLERANCE) if changes else None


def _products(
    source: Source, line: cst.SimpleStatementLine
) -> Iterator[tuple[cst.BaseExpression, Sequence[cst.BaseExpression]]]:
    for node in source.nodes(cst.BinaryOperation, line):
        if isinstance(node.operator, cst.MatrixMultiply):
            yield node, (node.left, node.right)
    for call in source.nodes(cst.Call, line):
        if dotted(call.func).rpartition(".")[2] in PRODUCTS and len(call.args) == 2:
            yield call, [argument.value for argument in call.args]


def _beneath_views(node: cst.BaseExpression) -> cst.BaseExpression:
    """Of `x.float().t()`, `x.float()`."""
    method = node.func if isinstance(node, cst.Call) else node
    if isinstance(method, cst.Attribute) and method.attr.value in VIEWS:
        return _beneath_views(method.value)
    return node


def _cast_of(source: Source, product: cst.BaseExpression) -> cst.Call | None:
    """The cast of a product back to a narrow type."""
    method = source.parent(product)
    call = source.parent(method) if isinstance(method, cst.Attribute) else None
    if not isinstance(call, cst.Call) or call.func is not method or not is_cast(call, NARROW, NARROW):
        return None
    return call


def needs_parentheses(source: Source, cast: cst.Call) -> bool:
    """Whether what a cast leaves behind stands inside another expression."""
    return not isinstance(source.parent(cast), (cst.Assign, cst.AnnAssign, cst.Return, cst.Arg))


def is_cast(node: cst.BaseExpression, methods: frozenset[str], types: frozenset[str]) -> bool:
    """Whether a node calls one of the methods without arguments, or `to` with one of the types alone."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    if not node.args:
        return node.func.attr.value in methods
    only = node.args[0]
    is_type = len(node.args) == 1 and only.keyword is None and dotted(only.value).rpartition(".")[2] in types
    return node.func.attr.value == "to" and is_type


def without_cast(node: cst.CSTNode) -> cst.BaseExpression:
    """What a cast is made of."""
    call = cst.ensure_type(node, cst.Call)
    return cst.ensure_type(call.func, cst.Attribute).value


def bare(node: cst.CSTNode) -> cst.CSTNode:
    """The same without parentheses."""
    return without_cast(node).with_changes(lpar=(), rpar=())
