"""Tensors that are loaded from HBM again and again within one execution."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from neuron_profile.analysis.advice.context import Context
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.whatif.change import Change, Variant
from neuron_profile.analysis.whatif.executions import Origins
from neuron_profile.analysis.whatif.kernel_lines import kernel_lines
from neuron_profile.analysis.whatif.resident import with_resident_tensors
from neuron_tools.arrays import Mask
from neuron_tools.records.program import Memory, Program
from neuron_tools.simulator.cost_scale import CostScale

MINIMUM_REPEATS = 2.0
MINIMUM_SHARE = 0.05  # of all bytes loaded
_NUMBER = re.compile(r"\d+")
"""What tells the tensors of one layer from those of the next."""


def find(context: Context) -> Iterator[Finding]:
    """One finding for all tensors that are loaded at least twice, named after the worst in all layers."""
    extra = sum(use.count * int(_extra_bytes(use.program).sum()) for use in context.programs)
    loaded = sum(use.count * int(_loaded_bytes(use.program).sum()) for use in context.programs)
    if not loaded or extra < MINIMUM_SHARE * loaded:
        return
    name, repeats = _worst(context)
    hot = context.hotspot(_repeated)
    yield context.finding(
        "repeated_loads",
        f"{extra / 1e6:,.1f} MB are loaded again: {name or 'a tensor'} is read {repeats:.1f} "
        "times an execution",
        "Keep the tensor in SBUF while it is needed: reorder the loops so that what is loaded is used "
        "by all tiles that need it, or make the tiles that stay resident larger.",
        Change("", _loaded_once),
        place=hot.place,
        evidence={
            "extra_bytes": extra,
            "loaded_bytes": loaded,
            "tensor": name,
            "repeats": round(repeats, 2),
        },
    )


def _worst(context: Context) -> tuple[str, float]:
    """The tensor that costs most bytes again, and how often it is read; those of all layers are one."""
    extra: Counter[str] = Counter()
    loaded: Counter[str] = Counter()
    size: Counter[str] = Counter()
    names: defaultdict[str, set[str]] = defaultdict(set)
    for use in context.programs:
        again, read = _extra_bytes(use.program), _loaded_bytes(use.program)
        for row in np.flatnonzero(again > 0):
            tensor = use.program.tensors[row]
            kind = _NUMBER.sub("*", tensor.name)
            names[kind].add(tensor.name)
            extra[kind] += use.count * int(again[row])
            loaded[kind] += use.count * int(read[row])
            size[kind] += use.count * tensor.byte_count
    worst = max(extra, key=lambda kind: (extra[kind], kind))
    alike = names[worst]
    return (worst if len(alike) > 1 else next(iter(alike))), loaded[worst] / max(1, size[worst])


def _loads(program: Program) -> Mask:
    dmas = program.dmas
    from_hbm = (dmas["source_memory"] == int(Memory.HBM)) & (dmas["destination_memory"] == int(Memory.SBUF))
    loads: Mask = from_hbm & (dmas["tensor"] >= 0)
    return loads


def _loaded_bytes(program: Program) -> np.ndarray:
    """(tensors,) bytes loaded of each in one execution."""
    loads = _loads(program)
    weights = program.dmas["bytes"][loads].astype(np.float64)
    return np.bincount(program.dmas["tensor"][loads], weights=weights, minlength=max(1, len(program.tensors)))


def _extra_bytes(program: Program) -> np.ndarray:
    """(tensors,) bytes that were loaded before in the same execution."""
    sizes = np.array([tensor.byte_count for tensor in program.tensors] or [0], np.float64)
    loaded = _loaded_bytes(program)
    return np.where(loaded >= MINIMUM_REPEATS * np.maximum(sizes, 1), loaded - sizes, 0.0)


def _repeated(program: Program) -> tuple[Mask, Mask]:
    tensors = _extra_bytes(program) > 0
    loads = _loads(program)
    rows = np.maximum(program.dmas["tensor"], 0)
    return np.zeros(len(program.instructions), bool), loads & tensors[rows]


def _loaded_once(variant: Variant, origins: Origins) -> Variant:
    """The first loads of each tensor, until all of it was loaded; those behind them for nothing.

    A kernel's are left out altogether, where what they load can stay in SBUF.
    """
    program = variant.program
    if kernel_lines(program) is not None:
        resident = with_resident_tensors(program, variant.core, variant.scale, _extra_bytes(program) > 0)
        if resident is not None:
            return replace(variant, program=resident[0], scale=resident[1])
    share, rows = np.ones(len(program.dmas)), np.flatnonzero(_repeated(program)[1])
    if not len(rows):
        return variant
    rows = rows[np.argsort(program.dmas["tensor"][rows], kind="stable")]
    tensors, sizes = program.dmas["tensor"][rows], program.dmas["bytes"][rows].astype(np.int64)
    before = np.cumsum(sizes) - sizes
    first = np.flatnonzero(np.diff(tensors, prepend=-1))
    before -= np.repeat(before[first], np.diff(first, append=len(rows)))
    whole = np.array([max(tensor.byte_count, 1) for tensor in program.tensors], np.int64)[tensors]
    share[rows] = np.clip((whole - before) / np.maximum(sizes, 1), 0, 1)
    scale = CostScale(np.ones(len(program.instructions)), share)
    return replace(variant, scale=variant.scale.times(scale))
