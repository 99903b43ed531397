"""How long the device takes to cast a tensor of fp32 to bf16 in HBM."""

from __future__ import annotations

from functools import cache

from neuron_tools.hardware import NeuronCore
from neuron_tools.records.program import DType, Engine, Memory, Program, QueueKind, joined_cores
from neuron_tools.simulator import ProgramBuilder, simulate

PARTITIONS = 128
_COLUMNS = 2048
"""Elements of a partition that move at a time, as the compiler cuts such a copy."""
_PLACES = 3
"""Tiles in SBUF that such a copy takes turns at."""


@cache
def narrowing_ns(core: NeuronCore, elements: int) -> int:
    """Time of a program that loads a tensor tile by tile and stores it in half the bytes.

    The physical cores of a logical one share the tensor.
    """
    part = _program(core, -(-max(elements, 1) // core.logical_core_size))
    return round(simulate(joined_cores([part] * core.logical_core_size), core).duration_ps / 1000)


def _program(core: NeuronCore, elements: int) -> Program:
    builder = ProgramBuilder("cast", target=core.name)
    load = builder.queue("qSyncLoad0", Engine.SYNC, QueueKind.INPUT)
    store = builder.queue("qGpSimdStore0", Engine.GPSIMD, QueueKind.OUTPUT)
    stored: list[int] = []
    for first in range(0, elements, PARTITIONS * _COLUMNS):
        count = min(elements - first, PARTITIONS * _COLUMNS)
        partitions = min(count, PARTITIONS)
        run = 4 * -(-count // partitions)
        before = stored[-_PLACES:][:1] if len(stored) >= _PLACES else []
        loaded = builder.dma(
            load, source_memory=Memory.HBM, destination_memory=Memory.SBUF, bytes=4 * count,
            descriptor_bytes=run, partitions=partitions, dtype=DType.F32, after=before,
        )  # fmt: skip
        stored.append(builder.dma(
            store, source_memory=Memory.SBUF, destination_memory=Memory.HBM, bytes=2 * count,
            descriptor_bytes=run // 2, partitions=partitions, dtype=DType.BF16, cast=2, after=[loaded],
        ))  # fmt: skip
    return builder.finish()
