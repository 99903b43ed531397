"""Where Dynamo has broken graphs in this process, and why."""

from __future__ import annotations

import sys
from typing import Any

from neuron_tools.records.graph_break import GraphBreak

_HINT = "Hint: "
_NOT_A_CAUSE = ("step_unsupported", "Unsupported Tensor.backward() call")
"""Consequences of another break, and the backward pass, which is a graph of its own wherever it is called."""


def graph_breaks() -> list[GraphBreak]:
    """One for each line and reason, in the order in which Dynamo came there.

    Of a line that it met several times, as it went on behind a break, the one with the longest stack.
    """
    dynamo = sys.modules.get("torch._dynamo.utils")
    found: dict[tuple[str, int, str], tuple[int, GraphBreak]] = {}
    for told in getattr(dynamo, "graph_break_reasons", ()):
        broken = _graph_break(told)
        if broken is None:
            continue
        key, depth = (broken.file, broken.line, broken.reason), len(told.user_stack)
        if key not in found or depth > found[key][0]:
            found[key] = depth, broken
    return [broken for _, broken in found.values()]


def _graph_break(told: Any) -> GraphBreak | None:
    """What Dynamo noted; None for what is no cause, or of no line."""
    reason, *more = (line.strip() for line in told.reason.strip().splitlines())
    if reason.startswith(_NOT_A_CAUSE) or not told.user_stack:
        return None
    hints = [line.removeprefix(_HINT) for line in more if line.startswith(_HINT)]
    first, last = told.user_stack[0], told.user_stack[-1]
    return GraphBreak(
        last.filename,
        last.lineno or 0,
        first.filename,
        first.lineno or 0,
        reason.rstrip("."),
        " ".join(hints),
    )
