"""Which tiles of a loop may hold 16-bit elements although the module states wider ones.

A tile from which only 16-bit results are made loses nothing that they keep but a rounding; the Vector
engine works up to four times faster on it. The same holds for the terms of a sum that are as inexact as the
bf16 operands of which they are products, while the sum itself is wide. What other reductions read keeps its
type, and so do results.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from neuron_tools.compiler.codegen.micro import Key, Micro, Selection, reduction_kind
from neuron_tools.records.program import DType, Opcode

_HALF = (DType.BF16, DType.F16)
_EXACT = ("maximum", "minimum")
_SUM = "add"
_SCALED = frozenset({"add", "subtract", "multiply"})


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
    inexact = _inexact_keys(selection, loaded, per_row)
    for key, _, kind in selection.partition_reductions:
        _want(wanted, key, DType.BF16 if kind == _SUM and key in inexact else None)
    for micro in reversed(selection.micros):
        if micro.reduces == micro.writes and micro.reduces is not None:
            kind = reduction_kind(micro.source)
            for key in micro.reads if kind not in _EXACT else ():
                _want(wanted, key, DType.BF16 if _is_sum(micro) and key in inexact else None)
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


def _is_sum(micro: Micro) -> bool:
    return micro.opcode is Opcode.TENSOR_REDUCE and reduction_kind(micro.source) == _SUM


def _inexact_keys(selection: Selection, loaded: Mapping[Key, DType], per_row: Collection[Key]) -> set[Key]:
    """Tiles whose elements are known to a bf16 number's relative error at best: one more rounding is no loss.

    A product is as inexact as one of its factors; rows' numbers scale and shift what is inexact already.
    """
    found = {key for key, dtype in loaded.items() if dtype is DType.BF16}
    for micro in selection.micros:
        tiles = [key in found for key in micro.reads if key not in per_row]
        multiplies = micro.opcode is Opcode.TENSOR_TENSOR and micro.source.opcode == "multiply"
        scales = micro.opcode is Opcode.TENSOR_SCALAR and set(micro.scalar_operations) <= _SCALED
        if (multiplies and any(tiles)) or (scales and tiles and all(tiles)):
            found.add(micro.writes)
    return found


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
