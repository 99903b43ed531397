# mypy: disable-error-code="no-any-return"
"""Compiled look at what the instructions of a Program refer to.

Imported only when a Program is timed: it needs numba.
"""

from __future__ import annotations

from neuron_tools.arrays import Table
from neuron_tools.compiled import compiled
from neuron_tools.records.program import Engine, Opcode

FAULTS = (
    "runs on an engine that does not exist",
    "has an opcode that does not exist",
    "waits on a missing wait row",
    "is a DMA trigger without a DMA",
    "starts a DMA that does not exist",
    "belongs to an HLO operation that does not exist",
    "signals a semaphore that does not exist",
    "reads a tile that does not exist",
    "writes a tile that does not exist",
    "applies an activation that does not exist",
)
"""What a wrong instruction does, as a sentence goes on after naming it."""

_ENGINE, _OPCODE, _WAIT, _TRIGGER, _DMA, _HLO, _SIGNAL, _READ, _WRITTEN, _ACTIVATION = range(len(FAULTS))
_ENGINES, _OPCODES, _DMA_TRIGGER = len(Engine), len(Opcode), int(Opcode.DMA_TRIGGER)


@compiled
def first_fault(
    instructions: Table, waits: int, dmas: int, hlo: int, semaphores: int, tiles: int, activations: int
) -> tuple[int, int]:
    """The first instruction that refers to something missing, and which fault it is; -1 where there is none.

    Args:
        instructions: (rows,) INSTRUCTION_DTYPE.
        waits: How many rows the table of waits has; the others likewise.
        dmas: DMAs.
        hlo: HLO operations.
        semaphores: Semaphores.
        tiles: Tiles.
        activations: Activations.
    """
    for row in range(instructions.shape[0]):
        one = instructions[row]
        if one.engine >= _ENGINES:
            return row, _ENGINE
        if one.opcode >= _OPCODES:
            return row, _OPCODE
        if one.wait_count > 0 and not 0 <= one.first_wait <= waits - one.wait_count:
            return row, _WAIT
        if one.opcode == _DMA_TRIGGER and one.dma < 0:
            return row, _TRIGGER
        if not -1 <= one.dma < dmas:
            return row, _DMA
        if not -1 <= one.hlo < hlo:
            return row, _HLO
        if not -1 <= one.signal < semaphores:
            return row, _SIGNAL
        if not -1 <= one.source < tiles or not -1 <= one.second_source < tiles:
            return row, _READ
        if not -1 <= one.parameter < tiles or not -1 <= one.second_parameter < tiles:
            return row, _READ
        if not -1 <= one.destination < tiles:
            return row, _WRITTEN
        if one.activation >= activations:
            return row, _ACTIVATION
    return -1, -1
