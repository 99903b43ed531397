"""Results of the Tensor engine that would cross from one PSUM bank into the next, which it cannot write."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuron_tools.backend.body import Body
from neuron_tools.nki.errors import NkiValidationError
from neuron_tools.nki.tracer import Tracer
from neuron_tools.records.program import Engine, Memory

_MANY_BANKS_FROM_GENERATION = 4
"""From this generation of NeuronCores on a result may take all banks."""


def check_banks(
    trace: Tracer,
    body: Body,
    tiles: npt.NDArray[np.void],
    tile_of: npt.NDArray[np.int32],
) -> None:
    """Refuse results of the Tensor engine in two banks of PSUM.

    Args:
        trace: Trace of the kernel.
        body: Its calls.
        tiles: Table of tiles with their addresses.
        tile_of: Tile of each region, -1 in HBM.

    Raises:
        NkiValidationError: Names the bytes and the kernel's line.
    """
    core, rows = trace.core, body.rows
    kinds = [k.number for k in body.kinds if k.steps and k.steps[-1].engine is Engine.TENSOR]
    if core.generation >= _MANY_BANKS_FROM_GENERATION or not kinds:
        return
    candidates = np.flatnonzero(np.isin(rows[:, 0], kinds) & (rows[:, 3] >= 0))
    tile = tile_of[rows[candidates, 3]]
    start = tiles["address"][tile].astype(np.int64)
    size = tiles["bytes_per_partition"][tile].astype(np.int64)
    bank = core.psum_bank_bytes
    crossing = (tiles["memory"][tile] == int(Memory.PSUM)) & (start // bank != (start + size - 1) // bank)
    if crossing.any():
        at = int(np.argmax(crossing))
        kind, site = (int(value) for value in rows[candidates[at], :2])
        raise NkiValidationError(
            f"the result of {body.kinds[kind].name} takes the bytes {start[at]} to "
            f"{start[at] + size[at]} of PSUM, which lie in two banks of {bank} bytes; let it begin at a "
            "bank, or split it there",
            trace.describe_site(site),
        )
