"""Who starts a DMA that the kernel leaves open, and who makes its descriptors.

In the traces of eight Trn2 kernels the kernel's inputs and outputs have software descriptors, which GpSimd
makes; constants and loads of tensors inside the kernel start on Sync, stores of such tensors on Scalar, both
with the hardware's descriptors. Other generations keep what the instruction set names first.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuron_tools.backend.body import FIRST_READ, FIRST_WRITE, INPUT, KIND, OUTPUT, Body
from neuron_tools.backend.kinds import Kind
from neuron_tools.backend.schedule import add_kind
from neuron_tools.records.program import Engine, Memory

TRACED_GENERATION = 3
"""The generation of which there are traces of compiled kernels."""


def choose_queues(body: Body) -> Body:
    """The body with starters and descriptors for what is open."""
    if body.core.generation != TRACED_GENERATION or not len(body):
        return body
    kinds, rows = list(body.kinds), body.rows.copy()
    outside = np.isin(body.buffers.role, (INPUT, OUTPUT))
    for number, kind in enumerate(body.kinds):
        if kind.transfer is None or not kind.transfer.is_open:
            continue
        here = np.flatnonzero(rows[:, KIND] == number)
        loads = kind.transfer.source_memory is Memory.HBM
        tensor = body.regions[rows[here, FIRST_READ if loads else FIRST_WRITE], 0]
        external = outside[tensor]
        rows[here[external], KIND] = add_kind(kinds, _started(kind, Engine.GPSIMD, "software"))
        starter = Engine.SYNC if loads else Engine.SCALAR
        rows[here[~external], KIND] = add_kind(kinds, _started(kind, starter, "hardware"))
    return replace(body, kinds=kinds, rows=rows)


def _started(kind: Kind, engine: Engine, descriptors_by: str) -> Kind:
    assert kind.transfer is not None
    return replace(
        kind, transfer=replace(kind.transfer, engine=engine, descriptors_by=descriptors_by, is_open=False)
    )
