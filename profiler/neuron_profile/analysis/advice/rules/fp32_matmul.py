"""Matrix products in fp32: the Tensor engine takes four passes where bf16 takes one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.advice.context import Context, Mask
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.advice.upcasts import upcasts
from neuron_profile.analysis.whatif.change import parse_change
from neuron_profile.reports.quantities import duration
from neuron_tools.records.program import DType, Opcode, Program

MINIMUM_SHARE = 0.02
_PRODUCTS = (int(Opcode.MATMUL), int(Opcode.LDWEIGHTS))


def find(context: Context) -> Iterator[Finding]:
    """One finding for all fp32 products, at the line that has most of their time."""
    hot = context.hotspot(_fp32_products)
    if hot.busy_ns < MINIMUM_SHARE * context.device_ns or not hot.busy_ns:
        return
    if (hot.place.file, hot.place.line) in upcasts(context):
        return  # `upcast_products` tells it, with its casts
    yield context.finding(
        "fp32_matmul",
        f"Matrix products in fp32 keep the Tensor engine busy for {duration(hot.busy_ns)}",
        "Compute in bf16: torch.autocast('neuron', torch.bfloat16) around the forward pass, or "
        "model.bfloat16(); in JAX give the operands dtype bfloat16.",
        parse_change("dtype=bf16"),
        place=hot.place,
        evidence={"tensor_engine_ns": round(hot.busy_ns), "at_place_ns": round(hot.place_ns)},
    )


def _fp32_products(program: Program) -> tuple[Mask, Mask]:
    table = program.instructions
    products = np.isin(table["opcode"], _PRODUCTS) & (table["input_dtype"] == int(DType.F32))
    return products, np.zeros(len(program.dmas), bool)
