"""A tensor is cast again and again: one that does not change in a loop, or values to fp32 and back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.advice.left_out import Kind, invariant
from neuron_profile.analysis.advice.line_calls import spans_of
from neuron_profile.analysis.advice.piecewise import MINIMUM_SHARE
from neuron_profile.analysis.advice.wide_runs import wide_runs
from neuron_profile.analysis.whatif.change import parse_change


def find(context: Context) -> Iterator[Finding]:
    """A finding per line that the loop's text shows to give the same each time, and per line that widens."""
    yield from invariant(
        context, "dtype_round_trips", Kind.CAST,
        "{name} is cast {times}, and is the same each time",
        "Cast it once, before the loop, or keep the tensor in the type in which it is used.",
    )  # fmt: skip
    yield from _there_and_back(context)


def _there_and_back(context: Context) -> Iterator[Finding]:
    """Casts to fp32 and back around functions that the engines compute in fp32 in any case.

    The gain is that of the same functions of the narrow type, without the casts.
    """
    what_if = context.what_if
    runs = wide_runs(context)
    if what_if is None or not runs:
        return
    total_ns, narrow = what_if.recorded_ns(), what_if.durations_ns(parse_change("dtype=bf16"))
    recorded = what_if.executions.end_ns - what_if.executions.start_ns
    for (file, line), found in runs.items():
        durations = recorded.copy()
        between = np.concatenate([run.between for run in found])
        durations[between] = narrow[between]
        casts = spans_of([cast for run in found for cast in run.casts])
        gain_ns = total_ns - what_if.without_spans_ns(casts, durations)
        if gain_ns >= MINIMUM_SHARE * total_ns:
            yield Finding(
                "dtype_round_trips",
                f"Values are cast to fp32 and back {len(found)} times around {found[0].names}",
                "Leave the casts out: the engines compute this in fp32 inside, whatever type tensors have.",
                Place(file, line),
                gain_ns=gain_ns,
                total_ns=total_ns,
                evidence={"times": len(found), "casts": 2 * len(found)},
            )
