"""The tile body of a group: its instructions and operands, before they have memory.

Keys name what tiles hold: values or parts of values. How many instructions a tile costs is decided by
`selection`, where its tiles lie by `loop` and `epilogue`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from neuron_tools.compiler.hlo import Operation
from neuron_tools.compiler.passes.groups import Shape
from neuron_tools.compiler.views import View
from neuron_tools.records.program import Engine, Flag, Opcode

Key = int | tuple[str, int]
_TENSOR_OPERANDS = {Opcode.TENSOR_SCALAR: 1, Opcode.ACTIVATE: 1, Opcode.SCALAR_TENSOR_TENSOR: 2}
"""Operands in front of the scalar ones."""


@dataclass(eq=False)
class Micro:
    """One instruction of the tile body.

    `shape` FULL works on the whole tile, ROW on one element per row. `reduces` is the key of a row
    reduction that the instruction delivers as well (or only, for reducing opcodes). `by_row`: where a
    partition has several rows, each takes an instruction of its own, because a row's number is a scalar
    operand or because what is added up is one number.
    """

    opcode: Opcode
    engines: tuple[Engine, ...]
    reads: list[Key]
    writes: Key
    shape: Shape
    source: Operation
    activation: str = ""
    flags: Flag = Flag.NONE
    scalar_operations: tuple[str, ...] = ()
    reduces: Key | None = None
    level: int = 0
    by_row: bool = False


@dataclass(frozen=True)
class External:
    """An operand that comes from outside the group."""

    key: Key
    value: int
    view: View
    form: str  # "full", "row", "column", "scalar", "expand", "iota_full", "iota_row", "iota_column"

    @property
    def stored_value(self) -> int:
        """The value whose element type lies in memory."""
        return self.view.root if self.view.root >= 0 else self.value


@dataclass
class Selection:
    """The tile body of a group."""

    micros: list[Micro] = field(default_factory=list)
    externals: dict[Key, External] = field(default_factory=dict)
    partition_reductions: list[tuple[Key, int, str]] = field(default_factory=list)  # operand, result, kind
    stored: dict[int, Key] = field(default_factory=dict)  # output value -> key
    levels: int = 1
    value_of: dict[Key, int] = field(default_factory=dict)
    level_of: dict[Key, int] = field(default_factory=dict)


def reduction_kind(operation: Operation) -> str:
    """What a reduction combines with: the opcode of its body ("add", "maximum", ...)."""
    body = operation.regions[0].operations if operation.regions else ()
    names = [inner.opcode for inner in body]
    if len(names) == 1:
        return names[0]
    return "argument" if "compare" in names else (names[-1] if names else "add")


def row_keys(selection: Selection) -> set[Key]:
    """Keys of what has one number for each row."""
    keys = {micro.writes for micro in selection.micros if micro.shape is Shape.ROW}
    keys |= {micro.reduces for micro in selection.micros if micro.reduces is not None}
    return keys | {key for key, item in selection.externals.items() if item.form in ("row", "iota_row")}


def mark_rows(selection: Selection) -> None:
    """Set `by_row` of the instructions that several rows of a partition cannot share."""
    rows = row_keys(selection)
    for micro in selection.micros:
        scalars = micro.reads[_TENSOR_OPERANDS.get(micro.opcode, len(micro.reads)) :]
        adds_up = micro.reduces not in (None, micro.writes) or micro.opcode is Opcode.BN_STATS
        micro.by_row = micro.shape is Shape.FULL and (adds_up or not rows.isdisjoint(scalars))


def needed_levels(selection: Selection) -> Mapping[Key, set[int]]:
    """For every FULL key: the passes over the columns in which it must be (re)computed or loaded.

    A pass computes what its own reductions and stores need; anything kept only in tiles of an earlier
    pass is made again.
    """
    levels: dict[Key, set[int]] = {}
    for key in selection.stored.values():
        levels.setdefault(key, set()).add(selection.level_of.get(key, 0))
    for key, _, _ in selection.partition_reductions:
        levels.setdefault(key, set()).add(selection.level_of.get(key, 0))
    for micro in reversed(selection.micros):
        if micro.shape is not Shape.FULL:
            continue
        mine = set(levels.get(micro.writes, ())) if micro.reduces != micro.writes else set()
        if micro.reduces is not None:
            mine.add(micro.level)
        levels[micro.writes] = (
            mine | levels.get(micro.writes, set()) if micro.reduces != micro.writes else mine
        )
        for key in micro.reads:
            levels.setdefault(key, set()).update(mine)
    return levels
