"""Lists of AWS's profile JSON as tables: which key becomes which column, and what stands where it lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neuron_tools.frozen import frozen
from neuron_tools.profile.importers.json_decode import LARGEST_TIME
from neuron_tools.profile.importers.json_rows import JsonRows, KeySet
from neuron_tools.profile.importers.recording import Recording
from neuron_tools.profile.schema import TABLES, Field, plain_types

PLACE_KEYS = ("subgraph", "sg_name", "process_idx", "pcore_idx")
TIME_KEYS = ("timestamp", "duration", "start_ts", "end_ts")
MOST_CORES = 1 << 16


@frozen
class Section:
    """Rows of one list that become rows of one table.

    Attributes:
        table: The table.
        columns: Column -> key of the JSON.
        defaults: Column -> value where the key is missing; required columns without one get 0 or "".
        where: Key and the texts of it that mean this table; None for all rows.
        factors: Column -> what its numbers are multiplied by.
        further_keys: Keys that are needed beside those of the columns.
        is_span: Whether rows have a start and a duration; otherwise they have a time if their table has.
    """

    table: str
    columns: Mapping[str, str]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    where: tuple[str, frozenset[str]] | None = None
    is_span: bool = False
    factors: Mapping[str, float] = field(default_factory=dict)
    further_keys: tuple[str, ...] = ()

    def needed(self) -> tuple[str, ...]:
        """All keys that are needed."""
        chosen = (self.where[0],) if self.where else ()
        return (*self.columns.values(), *chosen, *self.further_keys, *PLACE_KEYS, *TIME_KEYS)


def section_keys(sections: tuple[Section, ...]) -> KeySet:
    """The keys that the sections of one list need together."""
    return KeySet(tuple(dict.fromkeys(key for section in sections for key in section.needed())))


def stage_rows(
    section: Section,
    rows: JsonRows,
    recording: Recording,
    further: Callable[[JsonRows], dict[str, pa.Array]] | None = None,
) -> None:
    """Stages the rows of a list that belong to a section; `further` computes more columns of them."""
    if section.where is not None:
        chosen = is_one_of(rows.texts(section.where[0]), section.where[1])
        if not chosen.any():
            return
        rows = rows.take(chosen)
    times = _times(section, rows, recording)
    if times is None:
        return
    rows, columns = times
    columns |= _place(section.table, rows)
    for name, key in section.columns.items():
        field_ = TABLES[section.table].by_name[name]
        values = _values(rows, key, field_)
        if name in section.factors:
            values = pc.multiply(values, section.factors[name])
        columns[name] = _filled(values, field_, section.defaults.get(name))
    if further is not None:
        columns |= further(rows)
    _fill_required(section, columns, len(rows))
    recording.append(section.table, columns)


def is_one_of(column: pa.DictionaryArray, texts: frozenset[str]) -> npt.NDArray[np.bool_]:
    """Which rows have one of the texts."""
    found = pa.array([text in texts for text in column.dictionary.to_pylist()], pa.bool_())
    chosen: npt.NDArray[np.bool_] = (
        found.take(column.indices).fill_null(False).to_numpy(zero_copy_only=False).astype(np.bool_)
    )
    return chosen


def core_numbers(rows: JsonRows) -> pa.Array:
    """Physical core of each row: `pcore_idx`, or the number in `sg01`; 0 where there is neither."""
    by_name = pc.coalesce(rows.texts("subgraph").cast(pa.string()), rows.texts("sg_name").cast(pa.string()))
    names = by_name.dictionary_encode()
    numbers = pa.array([_core(text) for text in names.dictionary.to_pylist()], pa.int64()).take(names.indices)
    return pc.fill_null(pc.coalesce(rows.integers("pcore_idx"), numbers), 0)


def _core(text: str) -> int | None:
    digits = text.removeprefix("sg")
    return int(digits) if digits.isdecimal() and len(digits) < 6 else None


def _times(
    section: Section, rows: JsonRows, recording: Recording
) -> tuple[JsonRows, dict[str, pa.Array]] | None:
    """Rows that have a time, and their columns of time."""
    names = TABLES[section.table].by_name
    if "start_ts" not in names and "timestamp" not in names:
        return rows, {}
    start, known = rows.scaled("timestamp", 0)
    if section.is_span and not known.any():
        start, known = rows.scaled("start_ts", 0)
    recording.warn(f"Rows of {section.table} without a time were left out.", count=int((~known).sum()))
    if not known.any():
        return None
    rows, start = rows.take(known), start[known]
    if not section.is_span:
        return rows, {"timestamp": pa.array(start)}
    duration, has_duration = rows.scaled("duration", 0)
    end, has_end = rows.scaled("end_ts", 0)
    end = np.where(has_end & ~has_duration, end, start + np.maximum(duration, 0))
    recording.warn("Negative durations were set to 0.", count=int(((duration < 0) | (end < start)).sum()))
    end = np.minimum(np.maximum(start, end), LARGEST_TIME)
    return rows, {"start_ts": pa.array(start), "end_ts": pa.array(end)}


def _place(table: str, rows: JsonRows) -> dict[str, pa.Array]:
    names, place = TABLES[table].by_name, {}
    if "pcore_idx" in names:
        cores = core_numbers(rows)
        place["pcore_idx"] = pc.if_else(pc.less(pc.abs(cores), MOST_CORES), cores, 0)
    if "process_idx" in names:
        own, _ = rows.scaled("process_idx", 0)
        place["process_idx"] = pa.array(np.where((own < 0) | (own >= MOST_CORES), 0, own), pa.int32())
    return place


def _values(rows: JsonRows, key: str, wanted: Field) -> pa.Array:
    if wanted.type in ("int64", "int32"):
        return _integers(rows.integers(key), wanted)
    if wanted.type == "float64":
        return rows.numbers(key)
    if wanted.type == "bool":
        return rows.booleans(key)
    return rows.texts(key)


def _integers(column: pa.Array, wanted: Field) -> pa.Array:
    if wanted.type == "int64":
        return column
    fits = pc.less(pc.abs_checked(pc.if_else(pc.equal(column, -(1 << 63)), 0, column)), 1 << 31)
    return pc.if_else(fits, column, pa.scalar(None, pa.int64())).cast(pa.int32())


def _filled(column: pa.Array, wanted: Field, default: Any) -> pa.Array:
    """Nulls of a required column replaced; texts that are empty and need not be there become null."""
    if pa.types.is_dictionary(column.type):
        return _filled_texts(column, wanted, default)
    if not wanted.required or not column.null_count:
        return column
    return column.fill_null(_zero(wanted) if default is None else default)


def _filled_texts(column: pa.DictionaryArray, wanted: Field, default: Any) -> pa.Array:
    if wanted.required and not column.null_count:
        return column
    texts = column.cast(pa.string())
    if wanted.required:
        return texts.fill_null(str(default or "")).dictionary_encode()
    empty = pc.equal(texts, "")
    return pc.if_else(empty, pa.scalar(None, pa.string()), texts).dictionary_encode()


def _fill_required(section: Section, columns: dict[str, pa.Array], rows: int) -> None:
    for name in TABLES[section.table].required:
        if name not in columns and name != "duration_ns":
            wanted = TABLES[section.table].by_name[name]
            value = section.defaults.get(name, _zero(wanted))
            columns[name] = pa.array([value] * rows, plain_types()[wanted.type])


def _zero(wanted: Field) -> Any:
    zeros: dict[str, Any] = {"string": "", "bool": False, "float64": 0.0, "list<int64>": []}
    return zeros.get(wanted.type, 0)
