"""Data movement that nothing hides: engines wait while bytes move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.whatif.change import parse_change
from neuron_profile.reports.quantities import percent
from neuron_tools.arrays import Mask
from neuron_tools.records.program import Memory, Program

MINIMUM_GAIN = 0.05


def find(context: Context) -> Iterator[Finding]:
    """A finding where loads that run ahead of the work would save a twentieth of the device time.

    The gain is that of a buffer for each tile: what only waits to overwrite a tile no longer waits.
    """
    if context.what_if is None or not context.device_ns:
        return
    finding = context.finding(
        "dma_not_overlapped",
        "Computing and data movement wait for each other",
        "Load the next tile while this one is computed: give each of the two its own buffer (double "
        "buffering; in NKI, declare the tile inside the loop), and start loads before the loop that "
        "needs them.",
        parse_change("buffers=own"),
        place=context.hotspot(_waited_for).place,
    )
    if (finding.device_gain_ns or 0) < MINIMUM_GAIN * context.device_ns:
        return
    share = (finding.device_gain_ns or 0) / context.device_ns
    yield replace(finding, title=f"{finding.title}: {percent(share)} of the device time")


def _waited_for(program: Program) -> tuple[Mask, Mask]:
    """Loads."""
    loads = np.isin(program.dmas["destination_memory"], (int(Memory.SBUF), int(Memory.PSUM)))
    return np.zeros(len(program.instructions), bool), loads
