"""What a row is called, or what its track is: from its columns, in SQL and for batches of stored rows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.frozen import frozen
from neuron_tools.profile.export.source import Tables
from neuron_tools.profile.timeline.scan import EMPTY_TEXT, NO_TEXT, text_column

_TEXT = pa.string()


@frozen
class RowLabel:
    """The first of: a text column that is not empty, a number behind a prefix, a text that never changes.

    Attributes:
        columns: Text columns, the first that says something counts.
        empty: A text that says nothing, beside the empty one.
        numbered: Prefix and integer column.
        default: The last resort; "" for none.
        suffix: A text and an integer column that follow in any case, null as 0.
    """

    columns: tuple[str, ...] = ()
    empty: str = ""
    numbered: tuple[str, str] | None = None
    default: str = ""
    suffix: tuple[str, str] | None = None

    def needed(self) -> tuple[str, ...]:
        """All columns that it reads."""
        numbers = [pair[1] for pair in (self.numbered, self.suffix) if pair is not None]
        return (*self.columns, *numbers)

    def sql(self, tables: Tables, table: str) -> str:
        """SQL for the label of the row `t`."""
        known = [column for column in self.columns if tables.has(table, column)]
        parts = [f"nullif(nullif(CAST(t.\"{column}\" AS VARCHAR), ''), '{self.empty}')" for column in known]
        if self.numbered is not None:
            parts.append(f"'{self.numbered[0]}' || t.\"{self.numbered[1]}\"")
        parts.append(f"'{self.default}'" if self.default else "NULL")
        label = f"coalesce({', '.join(parts)}, '')"
        if self.suffix is None:
            return label
        return f"{label} || '{self.suffix[0]}' || coalesce(t.\"{self.suffix[1]}\", 0)"

    def of(self, batch: pa.RecordBatch) -> pa.DictionaryArray:
        """Labels of stored rows whose texts are dictionaries; without nulls. It must have no suffix."""
        if self.empty:
            batch = _without(batch, self.columns, self.empty)
        texts = text_column(batch, self.columns)
        if texts is None:
            return self._further(batch).dictionary_encode()
        if not texts.null_count and not pc.any(pc.equal(texts.dictionary, EMPTY_TEXT)).as_py():
            return texts
        plain = texts.cast(_TEXT)
        said = pc.if_else(pc.equal(plain, EMPTY_TEXT), NO_TEXT, plain)
        return pc.coalesce(said, self._further(batch)).dictionary_encode()

    def _further(self, batch: pa.RecordBatch) -> pa.Array:
        default = pa.repeat(pa.scalar(self.default, _TEXT), batch.num_rows)
        if self.numbered is None or self.numbered[1] not in batch.schema.names:
            return default
        number = batch.column(self.numbered[1]).cast(_TEXT)
        return pc.coalesce(pc.binary_join_element_wise(self.numbered[0], number, ""), default)


def _without(batch: pa.RecordBatch, columns: tuple[str, ...], text: str) -> pa.RecordBatch:
    """The batch with a text of its dictionaries made empty."""
    for name in columns:
        if name in batch.schema.names and pc.index(batch.column(name).dictionary, text).as_py() >= 0:
            column = batch.column(name)
            texts = column.dictionary
            texts = pc.if_else(pc.equal(texts, text), pa.scalar("", texts.type), texts)
            emptied = pa.DictionaryArray.from_arrays(column.indices, texts)
            batch = batch.set_column(batch.schema.get_field_index(name), name, emptied)
    return batch
