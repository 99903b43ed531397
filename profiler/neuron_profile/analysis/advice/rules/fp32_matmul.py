"""Matrix products in fp32: the Tensor engine takes four passes where bf16 takes one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.advice.narrowing import fp32_products, narrowed_gain
from neuron_profile.analysis.advice.upcasts import upcasts
from neuron_profile.analysis.whatif.change import parse_change
from neuron_profile.reports.quantities import duration
from neuron_tools.arrays import Mask
from neuron_tools.records.program import Program

MINIMUM_SHARE = 0.02


def find(context: Context) -> Iterator[Finding]:
    """One finding for all fp32 products, at the line that has most of their time."""
    hot = context.large_hotspot(_products, MINIMUM_SHARE)
    if hot is None:
        return
    if (hot.place.file, hot.place.line) in upcasts(context):
        return  # `upcast_products` tells it, with its casts
    if context.what_if is None:
        return
    change = parse_change("dtype=bf16")
    gain = narrowed_gain(context, change)
    yield Finding(
        "fp32_matmul",
        f"Matrix products in fp32 keep the Tensor engine busy for {duration(hot.busy_ns)}",
        "Compute in bf16: torch.autocast('neuron', torch.bfloat16) around the forward pass, or "
        "model.bfloat16(); in JAX give the operands dtype bfloat16.",
        hot.place,
        gain_ns=gain.total_gain_ns,
        device_gain_ns=gain.device_gain_ns,
        total_ns=gain.total_ns,
        what_if=change.text,
        evidence={"tensor_engine_ns": round(hot.busy_ns), "at_place_ns": round(hot.place_ns)},
    )


def _products(program: Program) -> tuple[Mask, Mask]:
    return fp32_products(program), np.zeros(len(program.dmas), bool)
