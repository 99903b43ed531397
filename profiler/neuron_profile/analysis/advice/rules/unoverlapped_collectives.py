"""Collectives that nothing hides: ranks wait while gradients or activations travel."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.communication import measure_communication
from neuron_profile.analysis.whatif.change import rows_change
from neuron_profile.reports.quantities import duration
from neuron_tools.arrays import Mask
from neuron_tools.records.program import Program

MINIMUM_SHARE = 0.05


def find(context: Context) -> Iterator[Finding]:
    """A finding where collectives that no computing hides take a twentieth of the device time."""
    communication = measure_communication(context.profile)
    if not communication.exposed_ns or communication.exposed_ns < MINIMUM_SHARE * context.device_ns:
        return
    hot = context.hotspot(_collectives)
    if not hot.busy_ns:  # those of torch.distributed are the rules' serial_collectives and collective_skew
        return
    yield context.finding(
        "unoverlapped_collectives",
        f"Collectives take {duration(communication.exposed_ns)} in which nothing is computed",
        "Start them as soon as their input is ready and compute meanwhile: smaller gradient buckets, "
        "prefetching of sharded parameters, asynchronous collectives.",
        rows_change(_collectives, 0.0),
        place=hot.place,
        evidence={"exposed_ns": communication.exposed_ns, "busy_ns": communication.busy_ns},
    )


def _collectives(program: Program) -> tuple[Mask, Mask]:
    return np.zeros(len(program.instructions), bool), program.dmas["collective"] >= 0
