"""Weights that stay in SBUF from one execution to the next: programs find them there.

NeuronCore Pipeline gives each core so few layers that their weights fit (aws-neuron-sdk,
about-neuron/arch/neuron-features/neuroncore-pipeline.rst). Where not all do, those that are used first stay:
they are what there would be no time to load, and the others are loaded meanwhile.
"""

from __future__ import annotations

import numpy as np

from neuron_tools.arrays import Ints
from neuron_tools.compiler.allocate import Allocator, Block
from neuron_tools.hardware import NeuronCore
from neuron_tools.simulator.builder import ProgramBuilder


class ResidentWeights:
    """The part of SBUF that weights have for themselves.

    Args:
        core: Its SBUF holds both these weights and what comes and goes.
        byte_count: What the weights may take.
    """

    def __init__(self, core: NeuronCore, byte_count: int) -> None:
        self._partitions = core.sbuf_partitions
        self._room = Allocator(core.sbuf_bytes_per_partition)
        self._loads: list[Ints] = []
        taken = -(-byte_count // self._partitions)
        self.beside = core.replace(sbuf_bytes_per_partition=core.sbuf_bytes_per_partition - taken)
        """The core with the SBUF that is left for everything else."""
        self._room.allocate(self.beside.sbuf_bytes_per_partition)

    def place(self, bytes_per_partition: int, count: int) -> list[Block] | None:
        """Buffers for a piece of a weight, for good; None where they do not fit."""
        size = -(-bytes_per_partition // self._room.alignment) * self._room.alignment
        if size * count > self._room.free_bytes:
            return None
        return [self._room.allocate(size) for _ in range(count)]

    def keep_rows(self, byte_count: int) -> bool:
        """Keep what is read by more partitions than hold it; False where it does not fit."""
        return self.place(-(-byte_count // self._partitions), 1) is not None

    def leave_out(self, rows: Ints) -> None:
        """Name instructions that load what stays."""
        self._loads.append(rows)

    def leave_loaded(self, builder: ProgramBuilder) -> None:
        """Take the loads of the weights that stay out of a program whose code is complete."""
        if self._loads:
            builder.remove(np.concatenate(self._loads))
