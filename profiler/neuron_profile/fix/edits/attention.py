"""Attention of products and a softmax becomes the operator that keeps its scores on the chip."""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from neuron_profile.fix.proposal import Edit, Request
from neuron_profile.fix.source import Source, dotted, removed, replaced_by

TITLE = "Use scaled_dot_product_attention"
TOLERANCE = 2e-2
_SOFTMAX = frozenset({"torch.softmax", "F.softmax", "torch.nn.functional.softmax"})
_PRODUCTS = frozenset({"torch.matmul", "torch.bmm"})


class _Scores(NamedTuple):
    """The text of what scores are made of."""

    query: str
    key: str
    scale: str


def edit(request: Request) -> Edit | None:
    """Replaces `softmax(q @ k.transpose(-2, -1) / scale, dim=-1) @ v`, in one statement or in two."""
    source, line = Source(request.text), request.finding.place.line
    if not source.imports("torch"):
        return None
    for call in source.nodes(cst.Call):
        first, last = source.lines(call)
        if first <= line <= last and dotted(call.func) in _SOFTMAX and _is_last(source, call):
            scores = _scores(source, call.args[0].value)
            if scores is not None:
                return _joined(source, call, scores) or _of_two(source, call, scores)
    return None


def _is_last(source: Source, call: cst.Call) -> bool:
    """Whether the softmax is that of the last dimension."""
    return len(call.args) == 2 and source.module.code_for_node(call.args[1].value) == "-1"


def _scores(source: Source, value: cst.BaseExpression) -> _Scores | None:
    """Query, key and scale of `query @ key.transpose(-2, -1)`, which may be divided or multiplied."""
    scale, product = "1.0", value
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, (cst.Divide, cst.Multiply)):
        factor, product = source.module.code_for_node(value.right), value.left
        scale = f"1 / ({factor})" if isinstance(value.operator, cst.Divide) else factor
    operands = _operands(product)
    if operands is None:
        return None
    query, turned = operands
    if not isinstance(turned, cst.Call) or not isinstance(turned.func, cst.Attribute):
        return None
    turns = sorted(source.module.code_for_node(arg.value) for arg in turned.args)
    if turned.func.attr.value != "transpose" or turns not in (["-1", "-2"], ["1", "2"]):
        return None
    if turns == ["1", "2"] and dotted(getattr(product, "func", product)) != "torch.bmm":
        return None
    code = source.module.code_for_node
    return _Scores(code(query), code(turned.func.value), scale)


def _operands(product: cst.CSTNode) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    if isinstance(product, cst.BinaryOperation) and isinstance(product.operator, cst.MatrixMultiply):
        return product.left, product.right
    if isinstance(product, cst.Call) and dotted(product.func) in _PRODUCTS and len(product.args) == 2:
        return product.args[0].value, product.args[1].value
    return None


def _joined(source: Source, call: cst.Call, scores: _Scores) -> Edit | None:
    """The softmax stands in the second product itself."""
    product = source.parent(call)
    product = source.parent(product) if isinstance(product, cst.Arg) else product
    operands = _operands(product) if product is not None else None
    if product is None or operands is None or operands[0] is not call:
        return None
    attention = _attention(source, scores, operands[1])
    return Edit(TITLE, source.edited({product: replaced_by(attention)}), TOLERANCE)


def _of_two(source: Source, call: cst.Call, scores: _Scores) -> Edit | None:
    """The softmax is named, and the next statement alone multiplies it."""
    made = source.parent(call)
    line = source.parent(made) if made is not None else None
    if (
        not isinstance(made, cst.Assign)
        or not isinstance(line, cst.SimpleStatementLine)
        or len(line.body) != 1
    ):
        return None
    name, block = dotted(made.targets[0].target), source.parent(line)
    if not name.isidentifier() or not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return None
    place = list(block.body).index(line)
    following = block.body[place + 1] if place + 1 < len(block.body) else None
    if (
        following is None
        or source.names(name, following) != 1
        or _is_read_later(source, name, line, following)
    ):
        return None
    for node in source.nodes(cst.CSTNode, following):
        operands = _operands(node)
        if operands is not None and dotted(operands[0]) == name:
            attention = _attention(source, scores, operands[1])
            return Edit(TITLE, source.edited({line: removed, node: replaced_by(attention)}), TOLERANCE)
    return None


def _is_read_later(source: Source, name: str, made: cst.CSTNode, used: cst.CSTNode) -> bool:
    return source.names(name, source.module) > source.names(name, made) + source.names(name, used)


def _attention(source: Source, scores: _Scores, value: cst.BaseExpression) -> cst.BaseExpression:
    return cst.parse_expression(
        "torch.nn.functional.scaled_dot_product_attention("
        f"{scores.query}, {scores.key}, {source.module.code_for_node(value)}, scale={scores.scale})"
    )
