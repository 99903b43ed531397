"""Weights that stay in SBUF from one execution to the next: programs find them there.

NeuronCore Pipeline gives each core so few layers that their weights fit (aws-neuron-sdk,
about-neuron/arch/neuron-features/neuroncore-pipeline.rst).
"""

from __future__ import annotations

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import Memory, Purpose
from neuron_tools.simulator.builder import ProgramBuilder


def beside_weights(core: NeuronCore, byte_count: int) -> NeuronCore:
    """The core with the SBUF that is left beside weights that stay in it."""
    taken = -(-byte_count // core.sbuf_partitions)
    return core.replace(sbuf_bytes_per_partition=core.sbuf_bytes_per_partition - taken) if taken else core


def leave_loaded(builder: ProgramBuilder, limit_bytes: int) -> None:
    """Take out the loads of the weights that are used first, as many as fit whole.

    Args:
        builder: Of a program whose code is complete.
        limit_bytes: What the weights may take together.
    """
    instructions, dmas, _ = builder.view()
    rows = np.flatnonzero(instructions["dma"] >= 0)
    loads = instructions["dma"][rows].astype(np.int64)
    is_weight = (dmas["purpose"][loads] == Purpose.WEIGHT) & (dmas["tensor"][loads] >= 0)
    is_weight &= dmas["destination_memory"][loads] == Memory.SBUF
    rows, tensors = rows[is_weight], dmas["tensor"][loads[is_weight]].astype(np.int64)
    builder.remove(rows[np.isin(tensors, _fitting(builder, tensors, limit_bytes))])


def _fitting(builder: ProgramBuilder, tensors: Ints, limit_bytes: int) -> list[int]:
    """The tensors, in the order of their first load, that are within the limit together."""
    kept, left = [], limit_bytes
    for tensor in dict.fromkeys(tensors.tolist()):
        size = builder.tensor_bytes(tensor)
        if size <= left:
            kept.append(tensor)
            left -= size
    return kept


__all__ = ["beside_weights", "leave_loaded"]
