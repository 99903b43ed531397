"""Data movement that nothing hides: engines wait while bytes move."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.advice.context import Context, Mask
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.whatif.change import rows_change
from neuron_tools.simulator.program import Program

MINIMUM_GAIN = 0.05


def find(context: Context) -> Iterator[Finding]:
    """A finding where perfect overlap would save a twentieth of the device time.

    The gain is that of the longer of the two alone: all transfers free, or all instructions free.
    """
    if context.what_if is None or not context.device_ns:
        return
    without_dma = context.what_if.durations_ns(rows_change("dma=0", _transfers, 0.0))
    without_work = context.what_if.durations_ns(rows_change("instructions=0", _instructions, 0.0))
    overlapped = np.maximum(without_dma, without_work)
    recorded_ns = context.what_if.recorded_ns()
    executions = context.what_if.executions
    saved_ns = int((executions.end_ns - executions.start_ns - overlapped).clip(0).sum())
    if saved_ns < MINIMUM_GAIN * context.device_ns:
        return
    hot = context.hotspot(_transfers)
    yield Finding(
        "dma_not_overlapped",
        f"Computing and data movement wait for each other: {saved_ns / context.device_ns:.0%} of the "
        "device time",
        "Load the next tile while this one is computed: give each of the two its own buffer (double "
        "buffering), and start loads before the loop that needs them.",
        hot.place,
        gain_ns=recorded_ns - context.what_if.total_ns(overlapped),
        device_gain_ns=saved_ns,
        total_ns=recorded_ns,
        evidence={
            "without_transfers_ns": int(without_dma.sum()),
            "without_instructions_ns": int(without_work.sum()),
        },
    )


def _transfers(program: Program) -> tuple[Mask, Mask]:
    return np.zeros(len(program.instructions), bool), np.ones(len(program.dmas), bool)


def _instructions(program: Program) -> tuple[Mask, Mask]:
    return program.instructions["dma"] < 0, np.zeros(len(program.dmas), bool)
