"""Transfers in small pieces: a descriptor under 512 bytes costs as much as one of 512."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from neuron_profile.analysis.advice.context import Context, Mask
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.whatif.change import Change, Variant
from neuron_profile.analysis.whatif.executions import Origins
from neuron_tools.records.program import Program

EFFICIENT_BYTES = 512  # DMA efficiency falls below this (NKI documentation, DMA)
MERGED_BYTES = 2048
MINIMUM_SHARE = 0.05


def find(context: Context) -> Iterator[Finding]:
    """One finding for all small transfers, at the line that has most of their time."""
    hot = context.hotspot(_small)
    if hot.busy_ns < MINIMUM_SHARE * context.device_ns or not hot.busy_ns:
        return
    sizes = [use.program.dmas["descriptor_bytes"][_small(use.program)[1]] for use in context.programs]
    smallest = int(np.concatenate(sizes).min())
    yield context.finding(
        "small_dma",
        f"DMA moves pieces of {smallest} to {EFFICIENT_BYTES - 1} bytes, which use a part of its bandwidth",
        "Make the innermost dimension that is moved contiguous and at least 512 bytes long: transpose "
        "or pad the tensor once beforehand, or move several rows at a time.",
        Change("small_dma", _merged),
        place=hot.place,
        evidence={"dma_ns": round(hot.busy_ns), "smallest_bytes": smallest},
    )


def _small(program: Program) -> tuple[Mask, Mask]:
    dmas = program.dmas
    small = (dmas["descriptor_bytes"] < EFFICIENT_BYTES) & (dmas["descriptors"] > 1)
    return np.zeros(len(program.instructions), bool), small


def _merged(variant: Variant, origins: Origins) -> Variant:
    """The same bytes in pieces of 2 KiB."""
    chosen = _small(variant.program)[1]
    if not chosen.any():
        return variant
    dmas = variant.program.dmas.copy()
    pieces = np.maximum(1, dmas["bytes"] // MERGED_BYTES)
    dmas["descriptors"] = np.where(chosen, pieces, dmas["descriptors"])
    dmas["descriptor_bytes"] = np.where(chosen, dmas["bytes"] // pieces, dmas["descriptor_bytes"])
    return replace(variant, program=replace(variant.program, dmas=dmas))
