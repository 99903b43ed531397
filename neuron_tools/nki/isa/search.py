"""The eight largest values, where they are, and their replacement."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuron_tools.backend.kinds import Kind
from neuron_tools.nki.isa.instruction import NkiInstruction
from neuron_tools.nki.isa.issue import (
    compute_step,
    form_of,
    issue,
    ready,
    refuse,
    require_on_chip,
)
from neuron_tools.nki.tensor import NkiTensor
from neuron_tools.nki.tracer import Tracer
from neuron_tools.nki.values import Array, single, write
from neuron_tools.records.program import Engine, Opcode

_LARGEST_SEARCH = 16384


_WIDTH = 8


def max8(dst: NkiTensor, src: NkiTensor, name: str | None = None) -> NkiInstruction:
    """The 8 largest values of each partition, in descending order.

    Args:
        dst: (P, 8) tile.
        src: (P, ...) tile of 8 to 16384 elements per partition.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    kind = _search_kind(trace, max8, "max8", Opcode.MAX8, dst, src)
    issue(trace, kind, dst, src)
    if trace.values:
        values = single(src).reshape(src.form.partitions, -1)
        write(dst, -np.sort(-values, axis=1, kind="stable")[:, :_WIDTH])
    return NkiInstruction(trace)


def _search_kind(trace: Tracer, call: Any, name: str, opcode: Opcode, dst: NkiTensor, src: NkiTensor) -> Kind:
    forms = form_of(dst), form_of(src)
    key = (call, *forms)
    kind = trace.kinds.get(key)
    if kind is None:
        require_on_chip(name, dst=dst.form, src=src.form)
        if not _WIDTH <= src.form.elements <= _LARGEST_SEARCH:
            raise refuse(
                f"{name} takes {_WIDTH} to {_LARGEST_SEARCH} elements per partition, got {src.form.elements}"
            )
        step = compute_step(Engine.VECTOR, opcode, dst.form, src.form, elements=src.form.elements)
        kind = trace.add_kind(key, Kind(name, (step,)))
    return kind


def nc_find_index8(
    dst: NkiTensor, data: NkiTensor, vals: NkiTensor, name: str | None = None
) -> NkiInstruction:
    """Index of the first occurrence in `data` of each of 8 values per partition.

    Equal values among the 8 find successive occurrences.

    Args:
        dst: (P, 8) tile, uint16 or uint32.
        data: (P, ...) tile of 8 to 16384 elements per partition.
        vals: (P, 8) tile.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    kind = _search_kind(trace, nc_find_index8, "nc_find_index8", Opcode.FIND_INDEX8, dst, data)
    form_of(vals)
    issue(trace, kind, dst, data, vals)
    if trace.values:
        found = _first_matches(single(data).reshape(data.form.partitions, -1),
                               single(vals).reshape(data.form.partitions, -1))  # fmt: skip
        write(dst, found.astype(np.int64))
    return NkiInstruction(trace)


def _first_matches(values: Array, wanted: Array) -> Array:
    """Column of each wanted value, -1 where there is none; repeated values take successive columns."""
    found = np.full(wanted.shape, -1, np.int64)
    taken = np.zeros(values.shape, bool)
    rows = np.arange(len(values))
    for column_index in range(wanted.shape[1]):
        equal = (values == wanted[:, column_index : column_index + 1]) & ~taken
        first = equal.argmax(axis=1)
        hit = equal[rows, first]
        found[hit, column_index] = first[hit]
        taken[rows[hit], first[hit]] = True
    return found


def nc_match_replace8(
    dst: NkiTensor,
    data: NkiTensor,
    vals: NkiTensor,
    imm: float,
    dst_idx: NkiTensor | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """Copy `data` with the first occurrence of each of 8 values per partition replaced by `imm`.

    Args:
        dst: (P, ...) tile.
        data: Tile of as many elements, 8 to 16384 per partition.
        vals: (P, 8) tile.
        imm: The replacement.
        dst_idx: (P, 8) tile for the indices of the matches.
        name: Kept for the profile.

    Raises:
        NkiValidationError: A rule of the engine is broken.
    """
    trace = ready()
    kind = _search_kind(trace, nc_match_replace8, "nc_match_replace8", Opcode.MATCH_REPLACE8, dst, data)
    form_of(vals)
    form_of(dst_idx)
    issue(trace, kind, dst, data, vals, second=dst_idx)
    if trace.values:
        values = single(data).reshape(data.form.partitions, -1).copy()
        found = _first_matches(values, single(vals).reshape(data.form.partitions, -1))
        rows, columns = np.nonzero(found >= 0)
        values[rows, found[rows, columns]] = imm
        write(dst, values)
        if dst_idx is not None:
            write(dst_idx, found)
    return NkiInstruction(trace)
