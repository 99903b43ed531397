"""Transfers in small pieces: a descriptor under 512 bytes costs as much as one of 512."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from neuron_profile.analysis.advice.context import Context, ProgramUse
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.whatif.change import Change, Variant
from neuron_profile.analysis.whatif.executions import Origins
from neuron_profile.analysis.whatif.kernel_lines import kernel_lines
from neuron_profile.analysis.whatif.lookups import EFFICIENT_BYTES, of_lookups
from neuron_profile.analysis.whatif.wider_strips import in_wider_strips, strips
from neuron_tools.arrays import Mask
from neuron_tools.records.program import Memory, Program

MERGED_BYTES = 2048
MINIMUM_SHARE = 0.05
_LOOKUPS = ("gather", "dynamic")


def find(context: Context) -> Iterator[Finding]:
    """One finding for all small transfers but those of look-ups, at the line that has most of their time.

    It is out of reach where a compiler takes most of them from tensors that it loads whole: it might have
    loaded them in larger pieces.
    """
    hot = context.large_hotspot(_small, MINIMUM_SHARE)
    if hot is None:
        return
    sizes = [use.program.dmas["descriptor_bytes"][_small(use.program)[1]] for use in context.programs]
    smallest = int(np.concatenate(sizes).min())
    yield context.finding(
        "small_dma",
        f"DMA moves pieces of {smallest} to {EFFICIENT_BYTES - 1} bytes, which use a part of its bandwidth",
        "Make the innermost dimension that is moved contiguous and at least 512 bytes long: transpose "
        "or pad the tensor once beforehand, or move several rows at a time.",
        Change("", _merged),
        place=hot.place,
        evidence={"dma_ns": round(hot.busy_ns), "smallest_bytes": smallest},
        within_reach=not _is_the_compilers(context.programs),
    )


def _is_the_compilers(uses: Sequence[ProgramUse]) -> bool:
    """Whether most of the bytes are of tensors that are loaded whole outside of kernels and look-ups."""
    whole = sum(use.count * _bytes(use.program, _small(use.program)[1] & _whole(use.program)) for use in uses)
    return whole > sum(use.count * _bytes(use.program, _small(use.program)[1]) for use in uses) / 2


def _bytes(program: Program, chosen: Mask) -> int:
    return int(program.dmas["bytes"][chosen].sum())


def _whole(program: Program) -> Mask:
    dmas = program.dmas
    if kernel_lines(program) is not None or not program.tensors:
        return np.zeros(len(dmas), bool)
    is_lookup = np.array([any(word in row.opcode for word in _LOOKUPS) for row in program.hlo] + [False])
    loads = (dmas["destination_memory"] == int(Memory.SBUF)) & (dmas["tensor"] >= 0) & ~is_lookup[dmas["hlo"]]
    tensors = np.maximum(dmas["tensor"], 0)
    loaded = np.bincount(tensors, weights=np.where(loads, dmas["bytes"], 0), minlength=len(program.tensors))
    whole = loaded * program.physical_cores >= [max(tensor.byte_count, 1) for tensor in program.tensors]
    chosen: Mask = loads & whole[tensors]
    return chosen


def _small(program: Program) -> tuple[Mask, Mask]:
    dmas = program.dmas
    small = (dmas["descriptor_bytes"] < EFFICIENT_BYTES) & (dmas["descriptors"] > 1)
    return np.zeros(len(program.instructions), bool), small & ~of_lookups(program)


def _merged(variant: Variant, origins: Origins) -> Variant:
    """The same bytes in pieces of 2 KiB; strips of a kernel's tiles are as much wider."""
    chosen = _small(variant.program)[1]
    if not chosen.any():
        return variant
    narrow = strips(variant.program, chosen)
    if narrow[chosen].all():
        widest = int(variant.program.dmas["descriptor_bytes"][narrow].max())
        return in_wider_strips(variant, MERGED_BYTES // max(widest, 1))
    dmas = variant.program.dmas.copy()
    pieces = np.maximum(1, dmas["bytes"] // MERGED_BYTES)
    dmas["descriptors"] = np.where(chosen, pieces, dmas["descriptors"])
    dmas["descriptor_bytes"] = np.where(chosen, dmas["bytes"] // pieces, dmas["descriptor_bytes"])
    return replace(variant, program=replace(variant.program, dmas=dmas))
