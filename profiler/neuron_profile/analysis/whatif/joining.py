"""How long the device takes to put small values side by side, for the host to read them all at once."""

from __future__ import annotations

from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import Engine, Memory, QueueKind
from neuron_tools.simulator import ProgramBuilder, simulate

_QUEUES = 4
"""How many queues the compiler's transfers within HBM take turns at."""


def joining_values_ns(core: NeuronCore, values: int, value_bytes: int) -> int:
    """Time of a program that copies each value to its place in HBM.

    Args:
        values: How many there are.
        value_bytes: Size of each.
    """
    builder = ProgramBuilder("join", target=core.name)
    queues = [builder.queue(f"qSyncLoad{each}", Engine.SYNC, QueueKind.INPUT) for each in range(_QUEUES)]
    size = max(value_bytes, 1)
    for number in range(values):
        builder.dma(
            queues[number % _QUEUES], source_memory=Memory.HBM, destination_memory=Memory.HBM,
            bytes=size, descriptor_bytes=size,
        )  # fmt: skip
    return round(simulate(builder.finish(), core).duration_ps / 1000)
