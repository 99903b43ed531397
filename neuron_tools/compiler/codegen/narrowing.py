"""Which tiles of a loop may hold 16-bit elements although the module states wider ones.

A tile from which only 16-bit results are made loses nothing that they keep but a rounding; the Vector
engine works up to four times faster on it. What a reduction reads keeps its type, and so do results.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from neuron_tools.compiler.codegen.micro import Key, Selection, reduction_kind
from neuron_tools.records.program import DType, Opcode

_HALF = (DType.BF16, DType.F16)
_EXACT = ("maximum", "minimum")


def narrow_keys(
    selection: Selection, stored: Mapping[int, DType], loaded: Mapping[Key, DType], per_row: Collection[Key]
) -> dict[Key, DType]:
    """Key -> 16-bit type of every intermediate tile that may have one.

    Args:
        selection: The tile body.
        stored: Output value -> its type in memory.
        loaded: Operand from outside -> its type in memory.
        per_row: Keys with one element per row: they cost nothing and stay as they are.
    """
    wanted: dict[Key, DType | None] = {}
    for value, key in selection.stored.items():
        _want(wanted, key, stored[value] if stored[value] in _HALF else None)
    for key, _, _ in selection.partition_reductions:
        wanted[key] = None
    for micro in reversed(selection.micros):
        if micro.reduces == micro.writes and micro.reduces is not None:
            if reduction_kind(micro.source) not in _EXACT:
                wanted.update(dict.fromkeys(micro.reads))
            continue
        for key in micro.reads:
            _want(wanted, key, wanted.get(micro.writes))
    made = {micro.writes for micro in selection.micros}
    narrow = {
        key: dtype
        for key, dtype in wanted.items()
        if dtype is not None and key in made and key not in per_row
    }
    return {**narrow, **_exact_reductions(selection, {**loaded, **narrow})}


def _exact_reductions(selection: Selection, held: Mapping[Key, DType]) -> dict[Key, DType]:
    """Results of reductions that only choose among 16-bit elements: they are such elements."""
    found: dict[Key, DType] = {}
    for micro in selection.micros:
        if micro.reduces is None or micro.reduces != micro.writes or micro.opcode is not Opcode.TENSOR_REDUCE:
            continue
        dtype = held.get(micro.reads[0]) if micro.reads else None
        if dtype in _HALF and reduction_kind(micro.source) in _EXACT:
            found[micro.reduces] = dtype
    return found


def _want(wanted: dict[Key, DType | None], key: Key, dtype: DType | None) -> None:
    wanted[key] = dtype if wanted.get(key, dtype) is dtype else None
