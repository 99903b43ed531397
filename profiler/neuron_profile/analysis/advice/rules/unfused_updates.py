"""An optimizer updates its parameters one by one, or all together but in one pass after another."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from statistics import median_low

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.advice.fused_times import added_up_ns, busy_share, fused_ns
from neuron_profile.analysis.advice.line_calls import Call, PlacedCall, calls_in_order, runs, spans_of
from neuron_profile.analysis.advice.piecewise import Patterns, joined_findings, pieces_of, without
from neuron_tools.arrays import Ints

MINIMUM_PARAMETERS = 4
_BEGUN = "aten::zero_"
"""What fills the states that the first step makes."""
_AVERAGES = 2
_STEPS = """
SELECT coalesce(process_idx, 0) AS process, name, start_ts AS begin_ns, end_ts AS end_ns
FROM HostSpan WHERE kind = 'optimizer' ORDER BY process, begin_ns
"""
_ADAM = frozenset({"Adam.step", "AdamW.step"})
_TOGETHER = "aten::_foreach_"
_UPDATE = "addcdiv_"
_REMAINING = frozenset({"lerp_", "maximum_", _UPDATE})
"""Passes of Adam that move as much as its fused form: that reads four tensors per parameter, writes three."""


def find(context: Context) -> Iterator[Finding]:
    """A finding per loop over parameters, or step of an optimizer, that launches the same for each of them.

    The gain is that of launching it for one, as `foreach=True` does for all together. Where Adam does that, a
    finding per line of its steps: the gain is that of the one pass that `fused=True` takes.
    """
    steps = _Steps(context)
    yield from _one_by_one(context, steps)
    found = _passes(context, steps)
    yield from joined_findings(
        context,
        found,
        "unfused_updates",
        "The optimizer updates its parameters in {operators} passes, {times}",
        "Give the optimizer fused=True, which updates them in one pass, or compile its step (torch.compile).",
        _one_pass_ns,
        _counters_ns(context, steps, found),
    )


def _one_by_one(context: Context, steps: _Steps) -> Iterator[Finding]:
    patterns = Patterns(context)

    def owner(placed: PlacedCall) -> Hashable | None:
        is_of_step = bool(placed.file) and steps.of(placed.call) is not None
        loop = placed.line if is_of_step else patterns.of(placed.file).updates.get(placed.line)
        return loop and (placed.file, loop)

    for pieces in pieces_of(runs(context, owner), MINIMUM_PARAMETERS).values():
        yield from without(
            context, "unfused_updates", "{pieces} updates of parameters are launched one by one",
            "Update all parameters together: an optimizer of torch.optim with foreach=True, torch._foreach_* "
            "functions in a loop of your own, or torch.compile around the step.", pieces,
        )  # fmt: skip


def _passes(context: Context, steps: _Steps) -> dict[tuple[str, int], list[Sequence[PlacedCall]]]:
    """The passes over each group of parameters in each of Adam's steps, by the line of the step."""
    groups = list(_groups(context, steps))
    launched = _launched(context, [placed.call for passes in groups for placed in passes])
    found: dict[tuple[str, int], list[Sequence[PlacedCall]]] = {}
    for passes in groups:
        if launched.issuperset(_remaining([placed.call for placed in passes])):
            found.setdefault((passes[0].file, passes[0].line), []).append(passes)
    return found


def _groups(context: Context, steps: _Steps) -> Iterator[list[PlacedCall]]:
    """The passes of Adam's steps, up to each that writes parameters."""
    opened: dict[int, list[PlacedCall]] = {}
    for placed in calls_in_order(context):
        step = steps.of(placed.call) if placed.file and placed.call.name.startswith(_TOGETHER) else None
        if step is not None and steps.names[step] in _ADAM:
            opened.setdefault(step, []).append(placed)
            if _pass(placed.call) == _UPDATE:
                yield opened.pop(step)


def _launched(context: Context, calls: Sequence[Call]) -> set[Call]:
    """The calls that launch something themselves: operations may wait and run together with later ones."""
    if context.what_if is None:
        return set()
    spans = context.what_if.launching_spans(spans_of(calls))
    return {calls[span] for span in set(spans.tolist()) if span >= 0}


def _remaining(calls: Sequence[Call]) -> list[Call]:
    return [call for call in calls if _pass(call) in _REMAINING]


def _pass(call: Call) -> str:
    """What a pass does: "addcdiv_"."""
    return call.name.removeprefix(_TOGETHER).partition(".")[0]


def _one_pass_ns(context: Context, groups: Sequence[Sequence[Call]]) -> Ints:
    """As long as memory takes; where engines take longer (many small parameters), as long as they do.

    The engines then work as large a part of the time as in the passes that remain: each parameter waits for
    its own loads and stores.
    """
    remaining = [_remaining(calls) for calls in groups]
    moved, passes = added_up_ns(context, groups, remaining), added_up_ns(context, groups, groups)
    engines, working = fused_ns(context, groups), busy_share(context, groups, remaining)
    computed = np.minimum(np.rint(engines / working).astype(np.int64), passes)
    one_pass: Ints = np.where(engines > moved, computed, moved)
    return one_pass


def _counters_ns(
    context: Context, steps: _Steps, found: Mapping[tuple[str, int], Sequence[Sequence[PlacedCall]]]
) -> dict[tuple[str, int], int]:
    """Host time of what the fused form adds, which counts steps on the device, by the line of the step.

    Its first step makes a counter for each parameter, as it makes its averages, and each step adds one to all
    in one more launch. The first counter waits for what is made ready once, with the fused form or without.
    """
    made: dict[tuple[str, int], list[int]] = {}
    for placed in calls_in_order(context):
        step = steps.of(placed.call) if placed.call.name == _BEGUN else None
        if step is not None and steps.names[step] in _ADAM:
            made.setdefault((placed.file, placed.line), []).append(_host_ns(placed))
    return {
        place: _half(made.get(place, [])) + len(groups) * median_low(_host_ns(group[0]) for group in groups)
        for place, groups in found.items()
    }


def _half(times_ns: Sequence[int]) -> int:
    """Of as many as there are averages: the time of as many as there are parameters."""
    return median_low(times_ns) * len(times_ns) // _AVERAGES if times_ns else 0


def _host_ns(placed: PlacedCall) -> int:
    return placed.call.end_ns - placed.call.start_ns


class _Steps:
    """When optimizers of torch.optim took their steps: of the line that calls a trainer, that is a part."""

    def __init__(self, context: Context) -> None:
        rows = context.profile.query(_STEPS).to_pylist()
        self._begins = [(row["process"], row["begin_ns"]) for row in rows]
        self._ends = [row["end_ns"] for row in rows]
        self.names = [row["name"] for row in rows]
        """Of each: "AdamW.step"."""

    def of(self, call: Call) -> int | None:
        """The place of the step in which a call was made; None where it was made in none."""
        place = bisect_right(self._begins, (call.process, call.start_ns)) - 1
        holds = place >= 0 and self._begins[place][0] == call.process and call.end_ns <= self._ends[place]
        return place if holds else None
