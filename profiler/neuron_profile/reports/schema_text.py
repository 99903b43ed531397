"""The schema of profiles as text, as JSON and as OpenAPI YAML."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from neuron_tools.profile.schema import ENUMS, SCHEMA_VERSION, Field, TableSchema

_OPENAPI_TYPES: dict[str, dict[str, Any]] = {
    "int64": {"type": "integer", "format": "int64"},
    "int32": {"type": "integer", "format": "int32"},
    "float64": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "string": {"type": "string"},
    "list<int64>": {"type": "array", "items": {"type": "integer", "format": "int64"}},
    "list<string>": {"type": "array", "items": {"type": "string"}},
}


def as_text(tables: Sequence[TableSchema]) -> str:
    """A block per table: its columns with type (`?` = may be null), unit and meaning."""
    blocks = []
    for table in tables:
        own = " (ours)" if table.is_extension else ""
        width = max(len(field.name) for field in table.fields)
        lines = [f"{table.name}{own}: {table.description}"]
        lines += [
            f"  {field.name:<{width}}  {_kind(field):<12} {_meaning(field)}".rstrip()
            for field in table.fields
        ]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def as_json(tables: Sequence[TableSchema]) -> str:
    """One object: the schema's version and its tables."""
    content = {
        "schema_version": SCHEMA_VERSION,
        "tables": {
            table.name: {
                "description": table.description,
                "is_extension": table.is_extension,
                "fields": [_record(field) for field in table.fields],
            }
            for table in tables
        },
    }
    return json.dumps(content, indent=1, ensure_ascii=False)


def as_openapi(tables: Sequence[TableSchema]) -> str:
    """An OpenAPI 3.0 document with one schema per table.

    Texts are written as JSON strings, which are YAML as well.
    """
    lines = [
        "openapi: 3.0.3",
        "info:",
        "  title: Neuron profile schema",
        f"  version: {_text(SCHEMA_VERSION)}",
        "paths: {}",
        "components:",
        "  schemas:",
    ]
    for table in tables:
        lines += _openapi_table(table)
    return "\n".join(lines) + "\n"


def _openapi_table(table: TableSchema) -> Iterator[str]:
    yield f"    {table.name}:"
    yield "      type: object"
    yield f"      description: {_text(table.description)}"
    if table.required:
        yield f"      required: {json.dumps(list(table.required))}"
    yield "      properties:"
    for field in table.fields:
        yield f"        {field.name}:"
        for key, value in _openapi_field(field).items():
            yield f"          {key}: {json.dumps(value, ensure_ascii=False)}"


def _openapi_field(field: Field) -> dict[str, Any]:
    about: dict[str, Any] = {**_OPENAPI_TYPES[field.type], "description": field.description}
    if not field.required:
        about["nullable"] = True
    if field.enum:
        about["enum"] = list(ENUMS[field.enum])
    if field.unit:
        about["x-unit"] = field.unit
    if field.is_extension:
        about["x-extension"] = True
    return about


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _kind(field: Field) -> str:
    return f"{field.type}{'' if field.required else '?'}"


def _meaning(field: Field) -> str:
    unit = f"[{field.unit}] " if field.unit else ""
    values = f" One of {', '.join(ENUMS[field.enum])}." if field.enum else ""
    return f"{unit}{field.description}{values}{' (ours)' if field.is_extension else ''}"


def _record(field: Field) -> dict[str, Any]:
    return asdict(field) | {"enum": list(ENUMS[field.enum]) if field.enum else None}
