"""Profiles of AWS's tools whose tables follow another version of the published schema than ours.

A profile names its version (`Metadata.profile_schema_version`) and describes its own columns
(`SchemaFields`). What both versions have alike is read; what is new, lacking, or told in another unit is
named, and never mistaken. How versions differ stands in `schema_versions.json`: a new one is an entry there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from neuron_tools.profile.schema import SCHEMA_VERSION, TABLES
from neuron_tools.profile.store import layout
from neuron_tools.profile.store.remote import source_of

MOST_NAMES = 10
LONGEST_VERSION = 32
VERSION_COLUMN = "profile_schema_version"
_DESCRIBED = ("table_name", "field_name", "field_unit")
_SHORT_UNITS = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds", "b": "bytes"}
Column = tuple[str, str]


@dataclass(frozen=True)
class ToldSchema:
    """What a profile says of its own tables.

    Attributes:
        version: Of the schema; None if it does not say.
        units: Unit of each (table, column) that it describes; empty if it describes none.
    """

    version: str | None = None
    units: Mapping[Column, str | None] = field(default_factory=dict)

    def changed_units(self) -> dict[Column, str]:
        """Columns of another version that we know in another unit, with the unit they are told in."""
        if self.version == SCHEMA_VERSION:
            return {}
        return {
            (table, column): unit
            for (table, column), unit in self.units.items()
            if unit and (own := _own_unit(table, column)) and _plain(unit) != _plain(own)
        }


@cache
def versions() -> Mapping[str, Mapping[str, Any]]:
    """The published versions of the schema: release, source, and what is called otherwise than in ours."""
    content: dict[str, dict[str, Any]] = json.loads(
        Path(__file__).with_name("schema_versions.json").read_text("utf-8")
    )
    return content


def renamed_columns(version: str | None) -> Mapping[str, Mapping[str, str]]:
    """By table, our name of each column that a version calls otherwise."""
    found: Mapping[str, Mapping[str, str]] = versions().get(version or "", {}).get("renamed", {})
    return found


def read_told_schema(directory: Path) -> ToldSchema:
    """What the profile in a folder of Parquet tables says of itself; nothing where that cannot be read."""
    told = [row[VERSION_COLUMN] for row in _rows(directory, "Metadata", (VERSION_COLUMN,))]
    version = next((text for text in told if isinstance(text, str) and text.isprintable()), None)
    units = {
        (str(row["table_name"]), str(row["field_name"])): row.get("field_unit")
        for row in _rows(directory, "SchemaFields", _DESCRIBED)
    }
    return ToldSchema(version and version[:LONGEST_VERSION], units)


def differences(directory: Path, told: ToldSchema, stored: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """How a profile differs from the schema that we know, one sentence for each kind.

    Args:
        stored: The columns of each of its tables that we know.
    """
    if told.version not in (None, SCHEMA_VERSION):
        yield (
            f"The profile follows version {told.version} of the schema. What it shares with {SCHEMA_VERSION} "
            "is read."
        )
    unknown = [name for name in _parquet_names(directory) if name not in TABLES]
    yield from _named("Tables that are not known were left out", unknown)
    added = [(name, own) for name, own in stored.items() for own in sorted(set(own) - _known(name, told))]
    yield from _named("Columns that are not known are in SQL alone", map(".".join, added))
    lacking = [f"{name}.{own}" for name, has in stored.items() for own in _required(name) - set(has)]
    yield from _named("Columns that every row should have are not there", sorted(lacking))
    changed = [f"{table}.{own} ({unit})" for (table, own), unit in sorted(told.changed_units().items())]
    yield from _named("Columns in other units than ours were left out", changed)


def _plain(unit: str) -> str:
    return _SHORT_UNITS.get(unit.lower(), unit.lower())


def _own_unit(table: str, column: str) -> str | None:
    known = TABLES[table].by_name.get(column) if table in TABLES else None
    return known.unit if known else None


def _known(table: str, told: ToldSchema) -> set[str]:
    return {*TABLES[table].column_names, *renamed_columns(told.version).get(table, {})}


def _required(table: str) -> set[str]:
    return {own.name for own in TABLES[table].fields if own.required and not own.is_extension}


def _named(sentence: str, names: Iterable[str]) -> Iterator[str]:
    shown = [name for name in names if name.isprintable()]
    if shown:
        further = f" and {len(shown) - MOST_NAMES:,} more" if len(shown) > MOST_NAMES else ""
        yield f"{sentence}: {', '.join(shown[:MOST_NAMES])}{further}."


def _parquet_names(directory: Path) -> list[str]:
    return sorted(
        name.removesuffix(layout.PART_SUFFIX)
        for name in os.listdir(directory)
        if name.endswith(layout.PART_SUFFIX)
    )


def _rows(directory: Path, table: str, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows of a small table; those of parts that cannot be read are not there."""
    found: list[dict[str, Any]] = []
    for path in layout.part_files(directory, table):
        try:
            with pq.ParquetFile(source_of(path)) as file:
                there = [name for name in columns if name in file.schema_arrow.names]
                if columns[0] in there:
                    found += file.read(columns=there).to_pylist()
        except (OSError, pa.ArrowException, UnicodeDecodeError):
            continue
    return found
