"""Reads the rows of a source and splits each batch into the tracks that it holds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neuron_tools.arrays import Ints
from neuron_tools.frozen import frozen
from neuron_tools.profile.store.damage import reading
from neuron_tools.profile.store.remote import source_of
from neuron_tools.profile.timeline.sources import SpanSource

Codes = npt.NDArray[np.int32]
BATCH_ROWS = 1 << 16
LARGEST_NAMES = 1 << 22
OTHER_NAME = "(other)"
_MOST_RUNS = 1 << 12
EMPTY_TEXT, NO_TEXT = pa.scalar("", pa.string()), pa.scalar(None, pa.string())  # making one anew costs 50 us


@frozen
class TrackKey:
    """What the rows of one track have in common."""

    process_idx: int
    core_idx: int | None
    number: int
    text: str


@frozen
class TrackRows:
    """Rows of one track that one batch holds, in ascending order of start.

    Attributes:
        key: The track.
        start_ns, duration_ns: int64, shape (rows,).
        name: Codes of `Names`, int32, shape (rows,).
        row: Row of the table, int64, shape (rows,).
        layer: Codes of `Names` of the module's path; None where the source has none.
    """

    key: TrackKey
    start_ns: Ints
    duration_ns: Ints
    name: Codes
    row: Ints
    layer: Codes | None = None

    def take(self, chosen: npt.NDArray[np.bool_]) -> TrackRows:
        """The rows that a mask chooses."""
        layer = None if self.layer is None else self.layer[chosen]
        return TrackRows(
            self.key,
            self.start_ns[chosen],
            self.duration_ns[chosen],
            self.name[chosen],
            self.row[chosen],
            layer,
        )


class Names:
    """Texts of a whole profile, each once, by number."""

    def __init__(self) -> None:
        self.texts: list[str] = [""]
        self._codes: dict[str, int] = {"": 0}

    def code(self, text: str | None) -> int:
        """The text's number; beyond four million texts that of "(other)"."""
        text = text or ""
        known = self._codes.get(text)
        if known is None:
            if len(self.texts) >= LARGEST_NAMES:
                return self._codes.setdefault(OTHER_NAME, 0)
            known = self._codes[text] = len(self.texts)
            self.texts.append(text)
        return known

    def encode(self, column: pa.DictionaryArray) -> Codes:
        """Numbers of a text column; null counts as the empty text. int32, shape (rows,)."""
        table = np.array([*map(self.code, column.dictionary.to_pylist()), 0], np.int32)
        indices = column.indices.fill_null(-1) if column.null_count else column.indices
        encoded: Codes = table.take(indices.to_numpy(zero_copy_only=False), mode="wrap")
        return encoded


def batches(
    paths: Sequence[Path], columns: Sequence[str], texts: Sequence[str]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """A table's rows in batches, each read while the one before it is used.

    Args:
        paths: The table's parts.
        columns: Columns to read; those that a part lacks are left out.
        texts: Those of them that are texts: they come as dictionaries.

    Yields:
        Number of the batch's first row, and the batch.

    Raises:
        DamagedProfileError: A part cannot be read.
    """
    found_next = _batches(paths, columns, texts)
    with ThreadPoolExecutor(1) as reader:
        upcoming = reader.submit(next, found_next, None)
        while (found := upcoming.result()) is not None:
            upcoming = reader.submit(next, found_next, None)
            yield found


def _batches(
    paths: Sequence[Path], columns: Sequence[str], texts: Sequence[str]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    row = 0
    for path in paths:
        with reading(path):
            for batch in _batches_of(path, columns, texts):
                yield row, batch
                row += batch.num_rows


def _batches_of(path: Path, columns: Sequence[str], texts: Sequence[str]) -> Iterator[pa.RecordBatch]:
    source = source_of(path)
    footer = pq.read_metadata(source)
    held = set(footer.schema.to_arrow_schema().names)
    with pq.ParquetFile(source, metadata=footer, read_dictionary=sorted(held & set(texts))) as part:
        chosen = [name for name in columns if name in held]
        for group in range(part.num_row_groups):
            yield from part.iter_batches(BATCH_ROWS, row_groups=[group], columns=chosen, use_threads=False)


def split(source: SpanSource, rows: int | Ints, batch: pa.RecordBatch, names: Names) -> Iterator[TrackRows]:
    """The tracks of a batch. Rows without a start are left out; an end before its start counts as it.

    Args:
        rows: Row of the table that the batch begins with, or the row of each of its rows.
        names: Numbers the spans' names.
    """
    row: Ints = np.arange(rows, rows + batch.num_rows, dtype=np.int64) if isinstance(rows, int) else rows
    kept = _kept(source, batch)
    if kept is not None:
        batch, row = batch.filter(kept), row[kept.to_numpy(zero_copy_only=False)]
    if not batch.num_rows:
        return
    start, duration = _times(source, batch)
    text = text_column(batch, source.texts)
    keys = [
        integers(batch, "process_idx"),
        integers(batch, source.core),
        integers(batch, source.number),
        np.zeros(len(row), np.int64) if text is None else _indices(text),
    ]
    name_column = _limits(batch, source.limit) if source.limit else text_column(batch, source.names)
    name = np.zeros(len(row), np.int32) if name_column is None else names.encode(name_column)
    layer = names.encode(_layers(batch)) if source.layers else None
    columns = [column for column in (start, duration, name, row, layer) if column is not None]
    changed = changes(keys)
    order = track_order(keys, start, changed)
    if order is not None:
        keys, columns = [key[order] for key in keys], [column[order] for column in columns]
        changed = changes(keys)
    for begin, end in _runs(changed):
        texts = "" if text is None or keys[3][begin] < 0 else text.dictionary[int(keys[3][begin])].as_py()
        core = int(keys[1][begin]) if source.core else None
        key = TrackKey(int(keys[0][begin]), core, int(keys[2][begin]), texts or "")
        yield TrackRows(key, *(cast(Any, column[begin:end]) for column in columns))


def _limits(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.DictionaryArray:
    """What a limit leaves, in words: "limited to 4 of 8", or "full rate"."""
    part, whole = (integers(batch, name) for name in columns)
    texts = [
        "full rate" if left >= of else f"limited to {left} of {of}"
        for left, of in zip(part.tolist(), whole.tolist())
    ]
    return pa.array(texts, pa.string()).dictionary_encode()


def integers(batch: pa.RecordBatch, name: str) -> Ints:
    """An integer column as int64; nulls, and a column that is not there, as 0."""
    if not name or name not in batch.schema.names:
        return np.zeros(batch.num_rows, np.int64)
    column = batch.column(name)
    if column.type != pa.int64():
        column = column.cast(pa.int64(), safe=False)
    filled = column.fill_null(0) if column.null_count else column
    values: Ints = filled.to_numpy(zero_copy_only=False)
    return values


def text_column(batch: pa.RecordBatch, names: Sequence[str]) -> pa.DictionaryArray | None:
    """The first text of each row that is not null or empty; None without such a column."""
    present = [_dictionary(batch.column(name)) for name in names if name in batch.schema.names]
    present = [column for column in present if column.null_count < len(column)] or present[:1]
    if not present:
        return None
    for place, column in enumerate(present):
        if not column.null_count and not pc.any(pc.equal(column.dictionary, EMPTY_TEXT)).as_py():
            present = present[: place + 1]
            break
    if len(present) == 1:
        return present[0]
    plain = [column.cast(pa.string()) for column in present]
    filled = [pc.if_else(pc.equal(column, EMPTY_TEXT), NO_TEXT, column) for column in plain]
    return pc.coalesce(*filled).dictionary_encode()


def _kept(source: SpanSource, batch: pa.RecordBatch) -> pa.Array | None:
    """Which rows to take; None for all."""
    kept = None
    for condition, wanted in ((source.only, True), (source.but_not, False)):
        if condition and condition[0] in batch.schema.names:
            equal = pc.equal(_dictionary(batch.column(condition[0])).cast(pa.string()), condition[1])
            equal = equal.fill_null(False)
            kept = equal if wanted else pc.invert(equal)
        elif condition and wanted:
            kept = pa.array(np.zeros(batch.num_rows, np.bool_))
    start = batch.column(source.start) if source.start in batch.schema.names else None
    if start is None:
        return pa.array(np.zeros(batch.num_rows, np.bool_))
    if start.null_count:
        valid = start.is_valid()
        kept = valid if kept is None else pc.and_(kept, valid)
    return kept


def _times(source: SpanSource, batch: pa.RecordBatch) -> tuple[Ints, Ints]:
    start = integers(batch, source.start)
    if source.end and source.end in batch.schema.names:
        end = batch.column(source.end)
        duration = integers(batch, source.end) - start
        if end.null_count:
            duration *= end.is_valid().to_numpy(zero_copy_only=False)
        return start, np.maximum(duration, 0, out=duration)
    return start, np.maximum(integers(batch, source.duration), 0)


def _layers(batch: pa.RecordBatch) -> pa.DictionaryArray:
    """Paths of modules, with a segment of its own above those of a backward pass."""
    if "layer" not in batch.schema.names:
        return pa.nulls(batch.num_rows, pa.string()).dictionary_encode()
    column = _dictionary(batch.column("layer"))
    paths = column.dictionary.to_pylist()
    codes = column.indices
    if "is_backward" in batch.schema.names:
        backward = batch.column("is_backward").fill_null(False)
        codes = pc.if_else(backward, pc.add(codes, pa.scalar(len(paths), pa.int32())), codes)
        paths = paths + [f"/backward{path}" if path else None for path in paths]
    return pa.DictionaryArray.from_arrays(codes, pa.array(paths, pa.string()))


def _dictionary(column: pa.Array) -> pa.DictionaryArray:
    if not pa.types.is_dictionary(column.type):
        return column.cast(pa.string()).dictionary_encode()
    if column.type.index_type == pa.int32() and column.type.value_type == pa.string():
        return column
    return column.cast(pa.dictionary(pa.int32(), pa.string()))


def _indices(column: pa.DictionaryArray) -> Ints:
    indices: Any = column.indices.fill_null(-1) if column.null_count else column.indices
    codes: Ints = indices.to_numpy(zero_copy_only=False)
    return codes


def track_order(keys: list[Any], start: Ints, changed: npt.NDArray[np.bool_]) -> Ints | None:
    """Order by track and start; None where the rows have it, as the writer leaves them.

    Args:
        keys: Integers that tell the tracks apart, the most important first, shape (rows,) each.
        changed: Rows at which another track's begin, but the first.
    """
    if bool(np.all((start[1:] >= start[:-1]) | changed)):
        first = [0, *(np.flatnonzero(changed)[:_MOST_RUNS] + 1).tolist()]
        if len({tuple(int(key[at]) for key in keys) for at in first}) == int(np.count_nonzero(changed)) + 1:
            return None
    return np.lexsort((start, *reversed(keys)))


def changes(keys: list[Any]) -> npt.NDArray[np.bool_]:
    """Whether each row but the first belongs to another track than the row before it."""
    changed = np.zeros(len(keys[0]) - 1, np.bool_)
    for key in keys:
        if key[0] != key[-1] or not (key == key[0]).all():
            changed |= key[1:] != key[:-1]
    return changed


def _runs(changed: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """First row of each run of one track's rows, and the row after its last."""
    return itertools.pairwise([0, *(np.flatnonzero(changed) + 1).tolist(), len(changed) + 1])
