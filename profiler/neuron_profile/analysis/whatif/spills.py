"""Which transfers of a program only make room in SBUF."""

from __future__ import annotations

import numpy as np

from neuron_profile.analysis.whatif.kernel_lines import NO_LINE, kernel_lines
from neuron_tools.arrays import Mask
from neuron_tools.records.program import Memory, Program, Purpose, TensorKind

_SPILLS = (int(Purpose.SPILL_SAVE), int(Purpose.SPILL_RELOAD))


def spills(program: Program) -> Mask:
    """DMAs that save values to HBM for want of room and load them back: the compiler's, and a kernel's own.

    A kernel spills by hand: it stores to a tensor in HBM that is neither its input nor its result, and loads
    from it again. A graph's intermediate tensors between fused groups are no spills.

    Returns:
        (dmas,) bool.
    """
    chosen: Mask = np.isin(program.dmas["purpose"], _SPILLS)
    lines = kernel_lines(program)
    if lines is None or not len(program.tensors):
        return chosen
    dmas = program.dmas
    kept = np.array([tensor.kind is TensorKind.INTERMEDIATE for tensor in program.tensors])
    tensor = np.maximum(dmas["tensor"], 0)
    own = (dmas["tensor"] >= 0) & kept[tensor] & (lines.dma != NO_LINE)
    stored = np.unique(dmas["tensor"][own & (dmas["destination_memory"] == int(Memory.HBM))])
    loaded = np.unique(dmas["tensor"][own & (dmas["source_memory"] == int(Memory.HBM))])
    by_hand: Mask = own & np.isin(dmas["tensor"], np.intersect1d(stored, loaded))
    return chosen | by_hand
