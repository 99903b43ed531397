"""SchemaFields: the profile describes its own tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from neuron_tools.profile.schema import ENUMS, TABLES, Field, TableSchema


def schema_fields(tables: Iterable[str]) -> dict[str, list[Any]]:
    """SchemaFields rows: one per column of each of the named tables."""
    rows = [_row(TABLES[name], field) for name in tables for field in TABLES[name].fields]
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _row(table: TableSchema, field: Field) -> dict[str, Any]:
    is_fraction = field.unit == "percent"
    return {
        "table_name": table.name,
        "table_description": table.description,
        "field_name": field.name,
        "field_description": field.description,
        "field_type": field.type,
        "field_required": field.required,
        "field_unit": field.unit,
        "field_minimum": 0.0 if is_fraction or field.unit in ("nanoseconds", "bytes") else None,
        "field_maximum": 1.0 if is_fraction else None,
        "field_enum_values": ",".join(ENUMS[field.enum]) if field.enum else None,
    }
