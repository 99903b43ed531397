"""A window of rows: pieces as producers gave them, joined and sorted by track and time, column by column.

A window is what becomes one row group. Its columns are handled one at a time, so that beside the pieces only
the sorted copy exists, and columns that are the same in every row are not copied at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.profile.schema import TableSchema, arrow_schema
from neuron_tools.profile.store.columns import null_column

Order = npt.NDArray[np.int64]
_TIMES = ("start_ts", "timestamp")
_FEW = 1 << 16
_STEP = 1009


class Workspace:
    """Memory that windows are sorted into, one after another: fresh memory costs more than the sorting."""

    def __init__(self) -> None:
        self._buffers: dict[int, npt.NDArray[Any]] = {}
        self._taken = 0

    def begin(self) -> None:
        """Give up what was taken: another window begins."""
        self._taken = 0

    def take(self, values: npt.NDArray[Any], order: Order) -> npt.NDArray[Any]:
        """`values[order]`, valid until another window begins."""
        self._taken += 1
        buffer = self._buffer(self._taken, values.dtype, len(order))
        taken: npt.NDArray[Any] = values.take(order, out=buffer, mode="clip")
        return taken

    def join(self, parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """One array of several of a type; valid until others are joined."""
        if len(parts) == 1:
            return parts[0]
        joined = self._buffer(0, parts[0].dtype, sum(map(len, parts)))
        return np.concatenate(parts, out=joined)

    def _buffer(self, place: int, kind: np.dtype[Any], length: int) -> npt.NDArray[Any]:
        buffer = self._buffers.get(place)
        if buffer is None or buffer.nbytes < length * kind.itemsize:
            buffer = self._buffers[place] = np.empty(length * kind.itemsize, np.uint8)
        return buffer[: length * kind.itemsize].view(kind)


def sorted_window(
    table: TableSchema, pieces: Sequence[pa.Table], workspace: Workspace | None = None
) -> pa.Table:
    """All rows of the pieces in one table: every column of the schema, ordered by track and time.

    Args:
        pieces: Tables with columns of the schema's types; optional columns may be absent.
        workspace: Holds the result's memory: the result is valid until the workspace is used again.
    """
    workspace = workspace or Workspace()
    workspace.begin()
    rows = sum(piece.num_rows for piece in pieces)
    present = {name for piece in pieces for name in piece.column_names}
    keys = [name for name in (*table.sort_key, *_TIMES) if name in present and name != "id"]
    order = row_order(table, {name: _joined(_chunks(table, name, pieces)) for name in keys})
    arrays = [
        _taken(_chunks(table, field.name, pieces), order, workspace)
        if field.name in present
        else null_column(table, field, rows)
        for field in table.fields
    ]
    return pa.table(arrays, schema=arrow_schema(table.name))


def row_order(table: TableSchema, columns: dict[str, pa.Array]) -> Order | None:
    """The order by track, then time; rows of one track and time stay as they came.

    Returns:
        int64, shape (rows,); None where the rows stand in this order, or have no time.
    """
    time_name = next((name for name in _TIMES if name in columns), None)
    if time_name is None or time_name not in table.sort_key or len(columns[time_name]) < 2:
        return None
    time = _integers(columns[time_name])
    track = _track_numbers([columns[name] for name in table.sort_key if name in columns and _is_track(name)])
    order: Order | None = None
    if track is not None and bool(np.any(track[1:] < track[:-1])):
        order = np.argsort(track, kind="stable")
        track, time = track[order], time[order]
    backward = time[1:] < time[:-1]
    if track is not None:
        backward &= track[1:] == track[:-1]
    if not bool(np.any(backward)):
        return order
    within = np.lexsort((time,)) if track is None else np.lexsort((time, track))
    return within if order is None else order[within]


def _is_track(name: str) -> bool:
    return name not in (*_TIMES, "id")


def _track_numbers(keys: Sequence[pa.Array]) -> npt.NDArray[Any] | None:
    """One number per row that orders tracks as their columns do; None where all rows belong to one track."""
    total, numbers = 1, None
    for key in keys:
        values = _ranks(key) if pa.types.is_dictionary(key.type) else _integers(key)
        low, high = int(values.min()), int(values.max())
        if low == high:
            continue
        numbers = values - low if numbers is None else numbers * (high - low + 1) + (values - low)
        total *= high - low + 1
    if numbers is None:
        return None
    return numbers.astype(np.uint16) if total <= _FEW else numbers


def _ranks(column: pa.DictionaryArray) -> npt.NDArray[np.int64]:
    """Texts by how they read, whatever their order in the dictionary; null is the lowest."""
    rank = pc.rank(column.dictionary, sort_keys="ascending").to_numpy().astype(np.int64)
    return np.append(rank, 0)[_codes(column)]


def _integers(column: pa.Array) -> npt.NDArray[np.int64]:
    filled = column.fill_null(0) if column.null_count else column
    values: npt.NDArray[np.int64] = filled.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return values


def _codes(column: pa.DictionaryArray) -> npt.NDArray[np.int32]:
    """Places in the dictionary, -1 for null."""
    indices = column.indices.fill_null(-1) if column.null_count else column.indices
    codes: npt.NDArray[np.int32] = indices.to_numpy(zero_copy_only=False)
    return codes


def _chunks(table: TableSchema, name: str, pieces: Sequence[pa.Table]) -> list[pa.Array]:
    """A column's pieces; nulls where one lacks the column. Texts share one dictionary."""
    field = table.by_name[name]
    chunks: list[pa.Array] = []
    for piece in pieces:
        held = piece.column(name).chunks if name in piece.column_names else None
        chunks += [null_column(table, field, piece.num_rows)] if held is None else held
    if field.type != "string" or not pa.types.is_dictionary(chunks[0].type):
        return chunks
    if len({_place(chunk.dictionary) for chunk in chunks}) == 1:
        return chunks
    unified: list[pa.Array] = pa.chunked_array(chunks).unify_dictionaries().chunks
    return unified


def _joined(chunks: Sequence[pa.Array]) -> pa.Array:
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)


def _place(array: pa.Array) -> tuple[int, ...]:
    """Where an array stands in memory: slices of one column share one dictionary."""
    buffers = [buffer.address if buffer is not None else 0 for buffer in array.buffers()]
    return (array.offset, len(array), *buffers)


def _is_constant(values: npt.NDArray[Any]) -> bool:
    """Whether all values are equal; a few are looked at before all."""
    return bool((values[::_STEP] == values[0]).all() and (values == values[0]).all())


def _taken(chunks: Sequence[pa.Array], order: Order | None, workspace: Workspace) -> pa.Array:
    """A column's rows in that order."""
    kind, nulls = chunks[0].type, sum(chunk.null_count for chunk in chunks)
    if order is None or nulls == len(order):
        return _joined(chunks)
    if pa.types.is_dictionary(kind):
        codes = workspace.join([_codes(chunk) for chunk in chunks])
        if _is_constant(codes):
            return _joined(chunks)
        codes = workspace.take(codes, order)
        indices = pa.array(codes, pa.int32(), mask=codes < 0 if nulls else None)
        return pa.DictionaryArray.from_arrays(indices, chunks[0].dictionary, safe=False)
    if nulls or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return _joined(chunks).take(pa.array(order))
    values = workspace.join([chunk.to_numpy() for chunk in chunks])
    if _is_constant(values):
        return _joined(chunks)
    return pa.array(workspace.take(values, order), kind)
