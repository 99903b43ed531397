"""The eight largest values, where they are, and their replacement."""

from __future__ import annotations

import numpy as np

from neuron_tools.arrays import Array
from neuron_tools.backend.kinds import Kind
from neuron_tools.nki.isa.issue import (
    refuse,
)
from neuron_tools.nki.isa.prologue import instruction
from neuron_tools.nki.isa.table import Call, Instruction, Operand
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.values import single, write
from neuron_tools.nki.view_form import ViewForm
from neuron_tools.records.program import Engine, Opcode

_LARGEST_SEARCH = 16384


_WIDTH = 8
_OF_EIGHT = {
    "max8": ("dst",), "nc_find_index8": ("dst", "vals"), "nc_match_replace8": ("vals", "dst_idx"),
}  # fmt: skip
"""Operands with one element for each value that is found or looked for."""


def _searched(call: Call) -> ViewForm:
    """The tile in which values are looked for: the first operand that is read."""
    return call.form(call.record.operands[1].name)


def _check_width(call: Call) -> None:
    """Refuse tiles that are too narrow or too wide for the search."""
    elements = _searched(call).elements
    if not _WIDTH <= elements <= _LARGEST_SEARCH:
        raise refuse(
            f"{call.record.name} takes {_WIDTH} to {_LARGEST_SEARCH} elements per partition, got {elements}"
        )
    for operand in call.record.operands:
        form = call.forms[operand.name]
        if operand.name in _OF_EIGHT[call.record.name] and form is not None and form.elements != _WIDTH:
            raise refuse(
                f"{call.record.name}: {operand.name} must have {_WIDTH} elements per partition, got shape "
                f"{form.shape}"
            )


def _search(call: Call) -> Kind:
    return call.kind(elements=_searched(call).elements)


@instruction(Instruction(
    "max8", Opcode.MAX8, (Engine.VECTOR,),
    (Operand("dst", written=True), Operand("src")),
    rule=_check_width, build=_search,
))  # fmt: skip
def max8(dst: NkiTensor, src: NkiTensor, name: str | None = None) -> None:
    """The 8 largest values of each partition, in descending order.

    Args:
        dst: (P, 8) tile.
        src: (P, ...) tile of 8 to 16384 elements per partition.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    values = single(src).reshape(src.form.partitions, -1)
    largest = np.partition(-values, _WIDTH - 1, axis=1)[:, :_WIDTH]  # sorting all takes ten times as long
    write(dst, -np.sort(largest, axis=1))


@instruction(Instruction(
    "nc_find_index8", Opcode.FIND_INDEX8, (Engine.VECTOR,),
    (Operand("dst", written=True, types=("uint16", "uint32")), Operand("data"),
     Operand("vals", streamed=False)),
    rule=_check_width, build=_search,
))  # fmt: skip
def nc_find_index8(dst: NkiTensor, data: NkiTensor, vals: NkiTensor, name: str | None = None) -> None:
    """Index of the first occurrence in `data` of each of 8 values per partition.

    Equal values among the 8 find successive occurrences.

    Args:
        dst: (P, 8) tile, uint16 or uint32.
        data: (P, ...) tile of 8 to 16384 elements per partition.
        vals: (P, 8) tile.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    found = _first_matches(single(data).reshape(data.form.partitions, -1),
                           single(vals).reshape(data.form.partitions, -1))  # fmt: skip
    write(dst, found.astype(np.int64))


def _first_matches(values: Array, wanted: Array) -> Array:
    """Column of each wanted value, -1 where there is none; repeated values take successive columns."""
    found = np.full(wanted.shape, -1, np.int64)
    left = values.copy()  # what is found becomes NaN, which equals nothing
    rows = np.arange(len(values))
    for place, sought in enumerate(wanted.T):
        equal = left == sought[:, None]
        first = equal.argmax(axis=1)
        hit = equal[rows, first]
        found[hit, place] = first[hit]
        left[rows[hit], first[hit]] = np.nan
    return found


@instruction(Instruction(
    "nc_match_replace8", Opcode.MATCH_REPLACE8, (Engine.VECTOR,),
    (Operand("dst", written=True), Operand("data"), Operand("vals", streamed=False),
     Operand("dst_idx", written=True, optional=True)),
    rule=_check_width, build=_search,
))  # fmt: skip
def nc_match_replace8(
    dst: NkiTensor,
    data: NkiTensor,
    vals: NkiTensor,
    imm: float,
    dst_idx: NkiTensor | None = None,
    name: str | None = None,
) -> None:
    """Copy `data` with the first occurrence of each of 8 values per partition replaced by `imm`.

    Args:
        dst: (P, ...) tile.
        data: Tile of as many elements, 8 to 16384 per partition.
        vals: (P, 8) tile.
        imm: The replacement.
        dst_idx: (P, 8) tile for the indices of the matches.
        name: The profile's name for the call.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    values = single(data).reshape(data.form.partitions, -1).copy()
    found = _first_matches(values, single(vals).reshape(data.form.partitions, -1))
    rows, columns = np.nonzero(found >= 0)
    values[rows, found[rows, columns]] = imm
    write(dst, values)
    if dst_idx is not None:
        write(dst_idx, found)
