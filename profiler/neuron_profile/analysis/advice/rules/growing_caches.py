"""A tensor grows by concatenation, which copies all of it for every new piece."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding, Place
from neuron_profile.analysis.advice.line_calls import calls_by_line, spans_of
from neuron_profile.analysis.advice.piecewise import MINIMUM_SHARE, Patterns
from neuron_tools.arrays import Ints

MINIMUM_TIMES = 4
_CONCATENATION = "aten::cat"


def find(context: Context) -> Iterator[Finding]:
    """A finding per line of the form `x = torch.cat([x, new])` that runs several times.

    Writing a new piece into its place costs what the concatenation takes for its quickest transfer.
    """
    what_if, patterns = context.what_if, Patterns(context)
    if what_if is None:
        return
    total_ns = what_if.recorded_ns()
    recorded = what_if.executions.end_ns - what_if.executions.start_ns
    for (file, line), calls in calls_by_line(context).items():
        copies = [call for call in calls if call.name == _CONCATENATION]
        if len(copies) < MINIMUM_TIMES or line not in patterns.of(file).growing:
            continue
        is_copy = what_if.launching_spans(spans_of(copies)) >= 0
        shorter = np.where(is_copy, np.minimum(recorded, _quickest_ns(context)), recorded)
        gain_ns = total_ns - what_if.total_ns(shorter)
        if gain_ns >= MINIMUM_SHARE * total_ns:
            yield Finding(
                "growing_caches",
                f"A tensor that grows is copied whole {len(copies)} times",
                "Make it as large as it will become, once, and write each new piece into its place: "
                "cache[:, position] = new.",
                Place(file, line),
                gain_ns=gain_ns,
                device_gain_ns=int((recorded - shorter).sum()),
                total_ns=total_ns,
                evidence={"copies": len(copies), "copied_ns": int(recorded[is_copy].sum())},
            )


def _quickest_ns(context: Context) -> Ints:
    """(executions,) the quickest transfer of each, from when it is handed over until it is done."""
    assert context.executions is not None
    quickest = np.zeros(len(context.executions), np.int64)
    for use in context.programs:
        times_ps = use.simulation.dma_end_ps - use.simulation.dma_trigger_ps
        if len(times_ps):
            quickest[context.executions.of_program(use.key)] = int(times_ps.min()) // 1000
    return quickest
