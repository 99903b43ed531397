"""Transposes on the Tensor engine: matrix work that only turns data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.whatif.change import rows_change
from neuron_profile.reports.quantities import percent
from neuron_tools.arrays import Mask
from neuron_tools.records.program import Flag, Opcode, Program

MINIMUM_SHARE = 0.10  # of the hardware FLOPs


def find(context: Context) -> Iterator[Finding]:
    """One finding where transposes are more than a tenth of the hardware FLOPs."""
    metrics = context.profile.summary()
    hardware = float(metrics.get("hardware_flops") or 0)
    transposing = float(metrics.get("transpose_flops") or 0)
    if not hardware or transposing <= MINIMUM_SHARE * hardware:
        return
    hot = context.hotspot(_transposing)
    yield context.finding(
        "transposes",
        f"{percent(transposing / hardware)} of the matrix work only transposes data",
        "Keep operands in the layout that the product needs: store weights transposed, or swap the "
        "operands so that the contracted dimension lies on the partitions.",
        rows_change(_transposing, 0.0),
        place=hot.place,
        evidence={"transpose_flops": transposing, "hardware_flops": hardware},
    )


def _transposing(program: Program) -> tuple[Mask, Mask]:
    table = program.instructions
    turned = (table["opcode"] == int(Opcode.TRANSPOSE)) | ((table["flags"] & int(Flag.TRANSPOSE)) != 0)
    return turned, np.zeros(len(program.dmas), bool)
