"""Where SBUF is full, a result takes the place of an operand that ends with it.

In an allocator by graph colouring, as the compiler's is, the two do not stand in each other's way. Counters
of mamba on Trn1 show it: one of two accumulators stays on chip beside two products and a chain of
exponential, scan and sum, which without it would need three places more. Done only where fewer bytes are
spilled for it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from neuron_tools.backend.body import BUFFER, SCRATCH, Body
from neuron_tools.backend.kinds import Kind
from neuron_tools.records.program import Memory, Opcode

_ELEMENTWISE = (
    Opcode.ACTIVATE, Opcode.TENSOR_TENSOR, Opcode.TENSOR_SCALAR, Opcode.TENSOR_TENSOR_SCAN, Opcode.RECIPROCAL,
)  # fmt: skip


def share_places(body: Body, clean: npt.NDArray[np.bool_]) -> Body:
    """The body with one buffer for a result and the operand that ends with it.

    Args:
        body: The calls.
        clean: (buffers,) whether HBM holds what each holds: a result in its place would have to be saved.
    """
    from neuron_tools.backend.copy_kernel import join_results

    buffers = body.buffers
    area = buffers.lines * buffers.pitch_bytes
    elementwise = body.kind_column([_elementwise(kind) for kind in body.kinds]) != 0
    free = (buffers.memory == int(Memory.SBUF)) & (buffers.role == SCRATCH)
    form = np.stack([buffers.memory, buffers.lines, buffers.pitch_bytes, buffers.partitions], 1).astype(
        np.int64
    )
    same = join_results(body.rows, body.regions, elementwise, free, free & ~clean, form, area)
    regions = body.regions.copy()
    regions[:, BUFFER] = same[regions[:, BUFFER]]
    return replace(body, regions=regions)


def _elementwise(kind: Kind) -> bool:
    return len(kind.steps) == 1 and kind.steps[0].opcode in _ELEMENTWISE
