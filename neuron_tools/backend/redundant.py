"""Movement that happened already: a tile that was loaded, and turned, once before is used again.

Loads, with the transposes and copies that follow them, leave the loops that they do not depend on, even where
what they bring exceeds SBUF (a clean tile is then loaded again), and nests that load the same share it.
Counters of NKIBench's kernels on Trn1 balance so to the byte: add_rmsnorm_matmul reads its weight once, not
32 times. Transposes of computed values stay where they are, also there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuron_tools.backend.body import BUFFER, FIRST_READ, FIRST_WRITE, Body
from neuron_tools.backend.kinds import Kind
from neuron_tools.backend.order import written_buffers
from neuron_tools.records.program import Memory, Opcode


def drop_redundant(body: Body) -> Body:
    """The body without loads, transposes and copies of what is on chip already."""
    from neuron_tools.backend.value_kernel import equal_buffers

    if not len(body) or body.is_placed:
        return body
    buffers = body.buffers
    does = body.kind_column([_does(kind) for kind in body.kinds])
    same = equal_buffers(
        body.rows, body.regions, does, buffers.on_chip, ~buffers.on_chip & ~written_buffers(body),
        buffers.lines * buffers.pitch_bytes,
    )  # fmt: skip
    repeated = same != np.arange(len(buffers))
    if not repeated.any():
        return body
    target = body.rows[:, FIRST_WRITE]
    writes = np.where(target >= 0, body.regions[target, BUFFER], 0)
    kept = ~(repeated[writes] & (target >= 0))
    _keep_in_psum(body, repeated, kept, writes)
    regions = body.regions.copy()
    here = repeated[regions[:, BUFFER]]
    regions[here, BUFFER] = same[regions[here, BUFFER]]
    return replace(body, regions=regions).ordered_by(np.flatnonzero(kept))


def _keep_in_psum(body: Body, repeated: np.ndarray, kept: np.ndarray, writes: np.ndarray) -> None:
    """Leave alone what would hold a bank of PSUM until it is used again."""
    readers = body.rows[kept, FIRST_READ:]
    read = np.zeros(len(body.buffers), bool)
    read[body.regions[readers[readers >= 0], BUFFER]] = True
    needed = repeated & read & (body.buffers.memory == int(Memory.PSUM))
    repeated[needed] = False
    target = body.rows[:, FIRST_WRITE] >= 0
    kept |= target & needed[writes]


def _does(kind: Kind) -> int:
    """Whether it moves, turns or computes, whole and as it stands in memory; 0: none of them."""
    from neuron_tools.backend.value_kernel import COMPUTES, MOVES, TURNS

    transfer = kind.transfer
    if transfer is not None:
        loads = (
            kind.name in ("dma_copy", "dma_transpose")
            and transfer.descriptors_by != "software"
            and transfer.source_memory is Memory.HBM
            and transfer.destination_memory is Memory.SBUF
        )
        return MOVES if loads else 0
    if kind.name in _DOES:
        return {"tensor_tensor": COMPUTES, "nc_transpose": TURNS, "tensor_copy": MOVES}[kind.name]
    fills = len(kind.steps) == 1 and kind.steps[0].opcode is Opcode.MEMSET and kind.constant is not None
    return MOVES if fills else 0


_DOES = ("tensor_tensor", "nc_transpose", "tensor_copy")
