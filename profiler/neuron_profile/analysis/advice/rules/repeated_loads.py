"""Tensors that are loaded from HBM again and again within one execution."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuron_profile.analysis.advice.context import Context, Mask
from neuron_profile.analysis.advice.finding import Finding
from neuron_profile.analysis.whatif.change import rows_change
from neuron_tools.records.program import Memory, Program

MINIMUM_REPEATS = 2.0
MINIMUM_SHARE = 0.05  # of all bytes loaded


def find(context: Context) -> Iterator[Finding]:
    """One finding for all tensors that are loaded at least twice, named after the worst."""
    extra = sum(use.count * int(_extra_bytes(use.program).sum()) for use in context.programs)
    loaded = sum(use.count * int(_loaded_bytes(use.program).sum()) for use in context.programs)
    if not loaded or extra < MINIMUM_SHARE * loaded:
        return
    uses = [use for use in context.programs if len(use.program.tensors)]
    worst = max(uses, key=lambda use: use.count * int(_extra_bytes(use.program).max()))
    row = int(np.argmax(_extra_bytes(worst.program)))
    tensor = worst.program.tensors[row]
    repeats = _loaded_bytes(worst.program)[row] / tensor.byte_count
    hot = context.hotspot(_repeated)
    yield context.finding(
        "repeated_loads",
        f"{extra / 1e6:,.1f} MB are loaded again: {tensor.name or 'a tensor'} is read {repeats:.1f} "
        "times an execution",
        "Keep the tensor in SBUF while it is needed: reorder the loops so that what is loaded is used "
        "by all tiles that need it, or make the tiles that stay resident larger.",
        rows_change("repeated_loads", _repeated, float(1 - extra / max(1, _bytes_of_repeated(context)))),
        place=hot.place,
        evidence={
            "extra_bytes": extra,
            "loaded_bytes": loaded,
            "tensor": tensor.name,
            "repeats": round(float(repeats), 2),
        },
    )


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


def _bytes_of_repeated(context: Context) -> int:
    return sum(
        use.count * int(use.program.dmas["bytes"][_repeated(use.program)[1]].sum())
        for use in context.programs
    )
