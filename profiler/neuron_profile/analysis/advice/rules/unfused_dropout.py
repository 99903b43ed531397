"""Dropout is written as a mask of random numbers that is compared, cast, multiplied and scaled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.advice.fused_times import added_up_ns
from neuron_profile.analysis.advice.line_calls import Call, PlacedCall, calls_in_order
from neuron_profile.analysis.advice.piecewise import joined_findings
from neuron_tools.arrays import Ints

MOST_STEPS = 8
"""Launches from the random numbers to the scaled result at most."""
_UNIFORM = frozenset({"uniform_", "rand", "rand_like"})
_MASKS = frozenset({"bernoulli", "bernoulli_"})
_COMPARED = frozenset({"gt", "ge", "lt", "le", "floor", "floor_"})
_APPLIED = frozenset({"mul", "mul_", "where", "masked_fill", "masked_fill_"})
_NEEDED = _UNIFORM | _MASKS | _COMPARED | _APPLIED
_BETWEEN = frozenset(
    {"copy_", "_to_copy", "clone", "fill_", "add", "add_", "div", "div_", "sub", "rsub", "bitwise_not"}
)


def find(context: Context) -> Iterator[Finding]:
    """A finding per line that makes such a mask: the gain is that of one launch for all of it.

    That makes the random numbers, keeps the mask, and applies it, as long as that takes now; casts and scales
    go. Only of operators that run one by one. What autograd runs for it is no part of the gain.
    """
    yield from joined_findings(
        context,
        _by_place(calls_in_order(context)),
        "unfused_dropout",
        "Dropout is computed {times} by {operators} operators, its mask in memory",
        "Use torch.nn.functional.dropout (or nn.Dropout), which does it in one launch.",
        _one_launch_ns,
    )


def _one_launch_ns(context: Context, groups: Sequence[Sequence[Call]]) -> Ints:
    needed = [[call for call in group if _short(call) in _NEEDED] for group in groups]
    return added_up_ns(context, groups, needed)


def _by_place(calls: Sequence[PlacedCall]) -> dict[tuple[str, int], list[Sequence[PlacedCall]]]:
    """From the random numbers to the scaled result, by the line that makes them."""
    found: dict[tuple[str, int], list[Sequence[PlacedCall]]] = {}
    for position, placed in enumerate(calls):
        if placed.file and _name(placed) in _UNIFORM | _MASKS:
            length = _length(calls[position : position + MOST_STEPS])
            if length:
                found.setdefault((placed.file, placed.line), []).append(calls[position : position + length])
    return found


def _length(calls: Sequence[PlacedCall]) -> int:
    """How many calls, the random numbers first, make up a dropout; 0 if they are none."""
    first, applied = calls[0], 0
    compared = _name(first) in _MASKS
    for number, placed in enumerate(calls[1:], 2):
        name = _name(placed)
        if placed.call.process != first.call.process or placed.file != first.file:
            break
        if not applied and name in _COMPARED:
            compared = True
        elif compared and not applied and name in _APPLIED:
            applied = number
        elif applied and placed.line == calls[applied - 1].line and name in ("mul", "mul_", "div", "div_"):
            return number  # the scale behind the mask
        elif applied or name not in _BETWEEN:
            break
    return applied


def _name(placed: PlacedCall) -> str:
    return _short(placed.call)


def _short(call: Call) -> str:
    return call.name.removeprefix("aten::").partition(".")[0]
