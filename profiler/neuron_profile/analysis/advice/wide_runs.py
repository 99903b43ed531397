"""Runs of operators between a cast to fp32 and the cast back, as the host launched them one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.line_calls import Call, PlacedCall, calls_in_order, spans_of
from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.records.program import DType, TensorKind

MOST_BETWEEN = 4
_CASTS = frozenset({"aten::copy_", "aten::_to_copy"})
_NARROW = (DType.BF16, DType.F16)
_PLAIN = frozenset(
    {
        *("relu", "gelu", "silu", "tanh", "sigmoid", "exp", "leaky_relu", "elu", "softplus", "hardtanh"),
        *("_softmax", "clamp", "abs", "neg", "add", "sub", "mul", "div", "square", "maximum", "minimum"),
    }
)
"""Functions that lose nothing by narrow operands: computed in fp32 and rounded once."""


@frozen
class WideRun:
    """A run.

    Attributes:
        casts: The cast before and the one behind.
        between: Positions of the executions between them.
        names: What these compute.
    """

    casts: Sequence[Call]
    between: Ints
    names: str


def wide_runs(context: Context) -> dict[tuple[str, int], list[WideRun]]:
    """The runs of each line of the user's own, by the file and line of the first cast."""
    if context.what_if is None:
        return {}
    calls = calls_in_order(context)
    launched = context.what_if.launching_spans(spans_of([placed.call for placed in calls]))
    execution = np.full(len(calls), -1, np.int64)
    execution[launched[launched >= 0]] = np.flatnonzero(launched >= 0)
    found: dict[tuple[str, int], list[WideRun]] = {}
    for first, placed in enumerate(calls):
        if placed.file and _widens(context, placed, int(execution[first])):
            last = _narrowing(context, calls, execution, first)
            if last is not None:
                names = ", ".join(_name(each) for each in calls[first + 1 : last])
                run = WideRun((placed.call, calls[last].call), execution[first + 1 : last], names)
                found.setdefault((placed.file, placed.line), []).append(run)
    return found


def _narrowing(context: Context, calls: Sequence[PlacedCall], execution: Ints, first: int) -> int | None:
    """Where the cast back stands, if only plain functions are between."""
    for position in range(first + 1, min(first + MOST_BETWEEN + 2, len(calls))):
        placed = calls[position]
        if execution[position] < 0 or placed.call.process != calls[first].call.process:
            return None
        if placed.call.name in _CASTS:
            is_back = _types(context, int(execution[position])) in {(DType.F32, each) for each in _NARROW}
            return position if is_back and position > first + 1 else None
        if _name(placed) not in _PLAIN:
            return None
    return None


def _widens(context: Context, placed: PlacedCall, execution: int) -> bool:
    is_cast = placed.call.name in _CASTS and not placed.call.is_copy and execution >= 0
    return is_cast and _types(context, execution) in {(each, DType.F32) for each in _NARROW}


def _types(context: Context, execution: int) -> tuple[DType, DType] | None:
    """Types that a cast reads and gives; None of what is no cast. It is given its destination, too."""
    executions = context.executions
    assert executions is not None
    key = int(executions.process[execution]), int(executions.executable[execution])
    tensors = executions.program(key).tensors
    given = {tensor.dtype for tensor in tensors if tensor.kind is TensorKind.OUTPUT}
    read = {tensor.dtype for tensor in tensors if tensor.kind is TensorKind.INPUT} - given
    return (read.pop(), given.pop()) if len(read) == len(given) == 1 else None


def _name(placed: PlacedCall) -> str:
    return placed.call.name.removeprefix("aten::").partition(".")[0].removesuffix("_")
