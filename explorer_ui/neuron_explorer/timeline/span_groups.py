"""Colors of spans by what they belong to: a module, a source line, an opcode, or what they waited for.

The groups with most time get a slot of the palette each, in this order; the last slot is for all others. A
slot is one byte for each row of a table, so a hundred million rows take 100 MB; those of the last few tables
that were looked at are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neuron_explorer.timeline.last_results import LastResults
from neuron_explorer.timeline.parameters import ParameterError
from neuron_explorer.timeline.track_places import columns_of
from neuron_tools.profile.reader import Profile
from neuron_tools.profile.store.recorded import text_codes

OTHER = 7
"""The slot of what belongs to none of the groups."""
KEPT_BYTES = 1 << 28
WAITS = ("Did not wait", "Waited for another engine", "Waited for DMA")
Slots = npt.NDArray[np.uint8]
_OPCODES = {
    "Instruction": ("opcode",),
    "HloInstruction": ("hlo_opcode",),
    "FrameworkInstruction": ("framework_name",),
}
_RANKED = ("Instruction", "FrameworkInstruction", "HloInstruction", "HostSpan")
"""Tables whose time says which groups are the largest: the first that knows any."""
_WAIT_COLUMNS = ("evt_wait_time_ns", "dma_wait_time_ns")


def group_names(profile: Profile, by: str) -> tuple[str, ...]:
    """What the slots of a way to color stand for, in their order.

    Args:
        by: "module", "line", "opcode" or "wait".

    Raises:
        ParameterError: There is no such way.
    """
    if by not in _WAYS:
        raise ParameterError(f"Spans cannot be colored by {by!r}: take one of {', '.join(_WAYS)}.")
    return profile.kept(("groups", by), lambda: _largest(profile, by))


class SpanGroups:
    """Slots of rows; those of the last few tables are kept."""

    def __init__(self) -> None:
        self._kept = LastResults[Slots](KEPT_BYTES, len)

    def add_slots(self, profile: Profile, by: str, tiles: pa.Table) -> pa.Table:
        """Tiles with a column `slot` behind the others: the color of each row.

        Args:
            by: As `group_names` takes it.
            tiles: Rows of `span_tiles.SCHEMA`.
        """
        place, row = (tiles.column(name).to_numpy().astype(np.int64) for name in ("track", "row"))
        slot = np.full(len(row), OTHER, np.uint8)
        for table in {profile.tracks()[each].table for each in np.unique(place).tolist()}:
            own = [number for number, track in enumerate(profile.tracks()) if track.table == table]
            known, here = self._of(profile, by, table), np.isin(place, own)
            inside = here & (row < len(known))
            slot[inside] = known[row[inside]]
        return tiles.append_column("slot", pa.array(slot))

    def _of(self, profile: Profile, by: str, table: str) -> Slots:
        """The slot of each row of a table; none where the table tells nothing of the groups."""
        names = group_names(profile, by)
        return self._kept.of((profile, by, table), lambda: _read(profile, by, table, names))


def _largest(profile: Profile, by: str) -> tuple[str, ...]:
    if by == "wait":
        return WAITS
    for table in _RANKED:
        columns = _WAYS[by][0](table) if table in profile.tables() else ()
        if not columns or not set(columns) <= columns_of(profile, table):
            continue
        name = " || ':' || ".join(f'"{column}"' for column in columns)
        rows = profile.query(
            f'SELECT {name} AS name FROM "{table}" WHERE "{columns[0]}" <> \'\' AND {name} IS NOT NULL '
            f"GROUP BY 1 ORDER BY sum(end_ts - start_ts) DESC, 1 LIMIT {OTHER}"
        )
        if rows.num_rows:
            return tuple(rows["name"].to_pylist())
    return ()


def _read(profile: Profile, by: str, table: str, names: Sequence[str]) -> Slots:
    columns_for, slots_of = _WAYS[by]
    columns = columns_for(table)
    if not columns or not set(columns) <= columns_of(profile, table):
        return np.zeros(0, np.uint8)
    parts = [slots_of(batch, columns, names) for batch in profile.stored_batches(table, columns)]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint8)


def _slots_of_text(batch: pa.RecordBatch, columns: Sequence[str], names: Sequence[str]) -> Slots:
    return _places(_column(batch, columns[0]), names)


def _slots_of_lines(batch: pa.RecordBatch, columns: Sequence[str], names: Sequence[str]) -> Slots:
    files, numbers = [name.rpartition(":")[0] for name in names], [name.rpartition(":")[2] for name in names]
    file, line = (_column(batch, name) for name in columns)
    number = pc.fill_null(line, -1).to_numpy(zero_copy_only=False)
    slot = np.full(batch.num_rows, OTHER, np.uint8)
    known = list(dict.fromkeys(files))
    in_file = _places(file, known)
    for place, (name, text) in enumerate(zip(files, numbers, strict=True)):
        slot[(in_file == known.index(name)) & (number == int(text))] = place
    return slot


def _slots_of_waits(batch: pa.RecordBatch, columns: Sequence[str], names: Sequence[str]) -> Slots:
    event, dma = (pc.fill_null(_column(batch, name), 0).to_numpy(zero_copy_only=False) for name in columns)
    return np.where(dma > event, 2, np.where(event > 0, 1, 0)).astype(np.uint8)


def _places(texts: pa.Array, names: Sequence[str]) -> Slots:
    """Place of each text in the names; `OTHER` where it is none of them."""
    if not pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_encode()
    if not len(texts.dictionary):
        return np.full(len(texts), OTHER, np.uint8)
    found = pc.index_in(texts.dictionary.cast(pa.string()), pa.array(list(names), pa.string()))
    of_text = found.fill_null(OTHER).to_numpy(zero_copy_only=False).astype(np.uint8)
    codes = text_codes(texts)
    slots: Slots = np.where(codes < 0, OTHER, of_text[codes]).astype(np.uint8)
    return slots


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column; nulls where a part of the table lacks it."""
    found = batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows, pa.string())
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


Columns = Callable[[str], tuple[str, ...]]
ReadSlots = Callable[[pa.RecordBatch, Sequence[str], Sequence[str]], Any]
_WAYS: Mapping[str, tuple[Columns, ReadSlots]] = {
    "module": (lambda table: ("layer",), _slots_of_text),
    "line": (lambda table: ("source_file", "source_line"), _slots_of_lines),
    "opcode": (lambda table: _OPCODES.get(table, ()), _slots_of_text),
    "wait": (lambda table: _WAIT_COLUMNS if table == "Instruction" else (), _slots_of_waits),
}
"""Of each way to color: the columns of a table that tell it, and how they become slots."""
