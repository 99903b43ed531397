"""Attention is written as two products with a softmax between them, whose scores go through memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.advice.fused_times import fused_ns
from neuron_profile.analysis.advice.line_calls import PlacedCall, calls_in_order
from neuron_profile.analysis.advice.piecewise import joined_findings

PRODUCTS = frozenset({"aten::bmm", "aten::mm", "aten::baddbmm"})
SOFTMAX = frozenset({"aten::_softmax", "aten::_safe_softmax"})
_COPIES = frozenset({"aten::copy_", "aten::clone", "aten::_to_copy"})
MOST_BETWEEN = 4
"""Scaling, a mask and what makes it, a cast and a dropout stand between a product and its softmax at most."""
_BETWEEN = frozenset(
    {
        *("mul", "div", "add", "sub", "mul_", "div_", "add_"),
        *("masked_fill", "masked_fill_", "where", "tril", "triu"),
        *("bitwise_not", "logical_not", "eq", "ne", "lt", "le", "gt", "ge"),
        *("copy_", "_to_copy", "clone"),
        *("native_dropout", "bernoulli_"),
    }
)


def find(context: Context) -> Iterator[Finding]:
    """A finding per line with such a softmax: the gain is that of one launch in which all engines overlap.

    Only of operators that run one by one: what is compiled is fused already. What autograd runs for it is no
    part of the gain.
    """
    yield from joined_findings(
        context,
        _by_place(calls_in_order(context)),
        "unfused_attention",
        "Attention is computed {times} by {operators} operators, scores in memory",
        "Use torch.nn.functional.scaled_dot_product_attention, which keeps the scores on the chip.",
        fused_ns,
    )


def _by_place(calls: Sequence[PlacedCall]) -> dict[tuple[str, int], list[Sequence[PlacedCall]]]:
    """From the first product, with copies of its operands, to the second, by the line of the softmax."""
    found: dict[tuple[str, int], list[Sequence[PlacedCall]]] = {}
    for position, placed in enumerate(calls):
        if placed.call.name in SOFTMAX and placed.file:
            first, last = _product(calls, position, -1), _product(calls, position, 1)
            if first is not None and last is not None:
                first = _with_its_copies(calls, first)
                found.setdefault((placed.file, placed.line), []).append(calls[first : last + 1])
    return found


def _with_its_copies(calls: Sequence[PlacedCall], product: int) -> int:
    """The first of the copies on the device that a line makes of a product's operands, right before it."""
    line = calls[product]
    first = product
    while first and calls[first - 1].call.name in _COPIES and not calls[first - 1].call.is_copy:
        before = calls[first - 1]
        if (before.file, before.line, before.call.process) != (line.file, line.line, line.call.process):
            break
        first -= 1
    return first


def _product(calls: Sequence[PlacedCall], start: int, step: int) -> int | None:
    """The product before or behind a softmax, if only elementwise operations are between them."""
    for distance in range(1, MOST_BETWEEN + 2):
        position = start + step * distance
        if not 0 <= position < len(calls) or calls[position].call.process != calls[start].call.process:
            return None
        name = calls[position].call.name
        if name in PRODUCTS:
            return position
        if name.removeprefix("aten::").partition(".")[0] not in _BETWEEN:
            return None
    return None
