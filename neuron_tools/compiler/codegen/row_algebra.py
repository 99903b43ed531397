"""Scales and shifts by numbers of a row, composed: what is computed once per row saves a pass over it.

However many of them follow one another, they are one scale and one shift. A weighted sum of two tensors that
is scaled and shifted takes two instructions: one tensor gets its scale and the whole shift, the other its
scale while it is added or, in either order as everywhere in a selection, subtracted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from neuron_tools.compiler.codegen.micro import Key, Micro, Selection
from neuron_tools.compiler.hlo import Operation
from neuron_tools.compiler.passes.groups import Shape
from neuron_tools.records.program import Engine, Opcode

AFFINE = frozenset({"add", "subtract", "multiply"})
TWO_SCALAR_OPERATIONS = 2
"""A TENSOR_SCALAR applies up to two operations (isa_functions: `tensor_scalar` op0, op1)."""

_TURNED = {"add": "subtract", "subtract": "add"}
"""What a shift that is subtracted in the end takes instead."""

Step = tuple[str, Key]
"""An operation, and the row's number that it takes."""


def row_steps(micro: Micro) -> tuple[Step, ...]:
    """What a TENSOR_SCALAR does with rows' numbers; nothing where it does something else too."""
    names = micro.scalar_operations
    is_affine = (
        micro.opcode is Opcode.TENSOR_SCALAR
        and micro.shape is Shape.FULL
        and micro.reduces is None
        and AFFINE.issuperset(names)
        and len(micro.reads) == 1 + len(names)
    )
    return tuple(zip(names, micro.reads[1:])) if is_affine else ()


def scale_and_shift(
    steps: Sequence[Step], source: Operation, temporary: Callable[[], Key]
) -> tuple[list[Step], list[Micro]]:
    """One multiplication and one addition, as far as there are any, and what computes their numbers."""
    chain: list[Micro] = []
    found: list[Step] = []
    scales = [key for name, key in steps if name == "multiply"]
    shift = next((place for place, (name, _) in enumerate(steps) if name != "multiply"), len(steps))
    if scales:
        factors = [("multiply", key) for key in scales[1:]]
        found.append(("multiply", _row_chain(scales[0], factors, source, temporary, chain)))
    if shift < len(steps):
        name, key = steps[shift]
        rest = [
            (_TURNED.get(one, one) if name == "subtract" else one, other) for one, other in steps[shift + 1 :]
        ]
        found.append((name, _row_chain(key, rest, source, temporary, chain)))
    return found, chain


def compose_sums(selection: Selection, temporary: Callable[[], Key]) -> None:
    """Replace scaled and shifted sums of two tensors, one of them scaled and shifted before."""
    for micro in list(selection.micros):
        made = {other.writes: other for other in selection.micros}
        total = made.get(micro.reads[0]) if row_steps(micro) else None
        if total is not None and _is_weighted_sum(selection, total):
            _replace(selection, micro, total, made.get(total.reads[0]), temporary)
    drop_unread(selection)


def _is_weighted_sum(selection: Selection, micro: Micro) -> bool:
    """Whether an instruction is (tensor x row's number) +- tensor, for one reader inside the loop."""
    names = micro.scalar_operations
    return (
        micro.opcode is Opcode.SCALAR_TENSOR_TENSOR
        and micro.shape is Shape.FULL
        and micro.reduces is None
        and len(micro.reads) == TWO_SCALAR_OPERATIONS + 1
        and AFFINE.issuperset(names)
        and names[-1:] != ("multiply",)
        and micro.writes not in selection.stored.values()
        and _reader_count(selection, micro.writes) == 1
    )


def _replace(
    selection: Selection, micro: Micro, total: Micro, before: Micro | None, temporary: Callable[[], Key]
) -> None:
    first, other, number = total.reads
    inner = row_steps(before) if before is not None else ()
    if before is not None and inner:
        first = before.reads[0]
    outer = row_steps(micro)
    found, chain = scale_and_shift(
        (*inner, (total.scalar_operations[0], number), *outer), micro.source, temporary
    )
    weights, weighing = scale_and_shift(
        [step for step in outer if step[0] == "multiply"], micro.source, temporary
    )
    moved = Micro(
        Opcode.TENSOR_SCALAR, (Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD),
        [first, *(key for _, key in found)], temporary(), Shape.FULL, total.source,
        scalar_operations=tuple(name for name, _ in found),
    )  # fmt: skip
    opcode = Opcode.SCALAR_TENSOR_TENSOR if weights else Opcode.TENSOR_TENSOR
    engines = (Engine.VECTOR,) if weights else (Engine.VECTOR, Engine.GPSIMD)
    added = Micro(
        opcode, engines, [other, moved.writes, *(key for _, key in weights)], micro.writes, Shape.FULL,
        micro.source, scalar_operations=(*(name for name, _ in weights), total.scalar_operations[-1]),
    )  # fmt: skip
    for made in (*chain, *weighing, moved):
        selection.value_of.setdefault(made.writes, micro.source.results[0])
    place = selection.micros.index(micro)
    selection.micros[place : place + 1] = [*chain, *weighing, moved, added]
    selection.micros.remove(total)


def _row_chain(
    key: Key, steps: Sequence[Step], source: Operation, temporary: Callable[[], Key], chain: list[Micro]
) -> Key:
    """Apply operations to a number of each row, two in an instruction."""
    for place in range(0, len(steps), TWO_SCALAR_OPERATIONS):
        pair, made = steps[place : place + TWO_SCALAR_OPERATIONS], temporary()
        chain.append(
            Micro(
                Opcode.TENSOR_SCALAR, (Engine.VECTOR,), [key, *(number for _, number in pair)], made,
                Shape.ROW, source, scalar_operations=tuple(name for name, _ in pair),
            )
        )  # fmt: skip
        key = made
    return key


def _reader_count(selection: Selection, key: Key) -> int:
    late = sum(read == key for read, _, _ in selection.partition_reductions)
    return late + sum(key in micro.reads for micro in selection.micros)


def drop_unread(selection: Selection) -> None:
    """Leave out scales and shifts that nobody reads any more."""
    for micro in reversed(list(selection.micros)):
        kept = micro.writes in selection.stored.values() or _reader_count(selection, micro.writes)
        if row_steps(micro) and not kept:
            selection.micros.remove(micro)
