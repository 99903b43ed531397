# mypy: disable-error-code="no-any-return"
"""Compiled look at what the rows of a Program refer to, which are nearly always right.

Imported only when a Program is timed: it needs numba.
"""

from __future__ import annotations

from neuron_tools.arrays import Table
from neuron_tools.compiled import compiled
from neuron_tools.records.program import Engine, Opcode

_ENGINES, _OPCODES, _TRIGGER = len(Engine), len(Opcode), int(Opcode.DMA_TRIGGER)


@compiled
def are_there(
    instructions: Table, waits: int, dmas: int, hlo: int, semaphores: int, tiles: int, activations: int
) -> bool:
    """Whether all that instructions refer to is there.

    Args:
        instructions: (rows,) INSTRUCTION_DTYPE.
        waits: Rows of the wait table; so the others of theirs.
        dmas: Of DMAs.
        hlo: Of HLO operations.
        semaphores: Of semaphores.
        tiles: Of tiles.
        activations: Of activations.
    """
    for row in range(instructions.shape[0]):
        one = instructions[row]
        if one.engine >= _ENGINES or one.opcode >= _OPCODES or one.activation >= activations:
            return False
        if one.wait_count > 0 and not 0 <= one.first_wait <= waits - one.wait_count:
            return False
        if not -1 <= one.dma < dmas or (one.opcode == _TRIGGER and one.dma < 0):
            return False
        if not -1 <= one.hlo < hlo or not -1 <= one.signal < semaphores:
            return False
        if not -1 <= one.source < tiles or not -1 <= one.second_source < tiles:
            return False
        if not -1 <= one.parameter < tiles or not -1 <= one.second_parameter < tiles:
            return False
        if not -1 <= one.destination < tiles:
            return False
    return True
