"""Scales and shifts that each pass over a row's columns makes again, joined with what reads them there.

What two passes need is computed in both. Where the only reader of a pass is an instruction on two tensors,
this one scales or shifts its operand itself (SCALAR_TENSOR_TENSOR), and the pass has an instruction less.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from neuron_tools.compiler.codegen.micro import Key, Micro, Selection, mark_rows, needed_levels
from neuron_tools.compiler.codegen.row_algebra import drop_unread, row_steps
from neuron_tools.records.program import Engine, Opcode


def join_within_levels(selection: Selection) -> None:
    """Change the instructions of a selection whose levels are passes of their own."""
    made = {micro.writes: micro for micro in selection.micros if len(row_steps(micro)) == 1}
    levels = needed_levels(selection)
    for micro in selection.micros:
        if (
            micro.opcode is Opcode.TENSOR_TENSOR
            and len(set(micro.reads)) > 1
            and Engine.VECTOR in micro.engines
        ):
            alone = (
                key for key in micro.reads if key in made and _reads_alone(selection, micro, key, levels)
            )
            key = next(alone, None)
            if key is not None:
                _join(micro, made[key])
    drop_unread(selection)
    mark_rows(selection)


def _join(micro: Micro, scaled: Micro) -> None:
    other = next(key for key in micro.reads if key != scaled.writes)
    micro.opcode, micro.engines = Opcode.SCALAR_TENSOR_TENSOR, (Engine.VECTOR,)
    micro.reads = [scaled.reads[0], other, *scaled.reads[1:]]


def _reads_alone(selection: Selection, micro: Micro, key: Key, levels: Mapping[Key, Collection[int]]) -> bool:
    """Whether no other instruction reads a key in the passes in which this one does."""
    others = [
        levels.get(other.writes, ())
        for other in selection.micros
        if key in other.reads and other is not micro
    ]
    if key in selection.stored.values():
        others.append([selection.level_of.get(key, 0)])
    return all(set(levels.get(micro.writes, ())).isdisjoint(other) for other in others)
