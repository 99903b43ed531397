"""A Program as named pieces of bytes, without code in them: its tables as NumPy files, the rest as JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from neuron_tools.records.json_values import decode, encode, field_types
from neuron_tools.records.program import TABLE_DTYPES, Program, conform

RECORD_NAME = "program.json"
_TABLE_SUFFIX = ".npy"


def program_pieces(program: Program) -> dict[str, bytes]:
    """`program.json` and one `.npy` file per table."""
    values = {field.name: getattr(program, field.name) for field in fields(Program)}
    tables = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    others = {name: encode(value) for name, value in values.items() if name not in tables}
    pieces = {RECORD_NAME: json.dumps(others, separators=(",", ":")).encode()}
    for name, table in tables.items():
        pieces[name + _TABLE_SUFFIX] = _array_bytes(table)
    return pieces


def program_from_pieces(pieces: Mapping[str, bytes]) -> Program:
    """The Program that `program_pieces` took apart; pieces of other names are passed over.

    Raises:
        ValueError, TypeError, KeyError, AttributeError, OSError: A piece is missing or damaged.
    """
    hints = field_types(Program)
    values: dict[str, Any] = {
        name: decode(hints[name], value)
        for name, value in json.loads(pieces[RECORD_NAME]).items()
        if name in hints
    }
    for name in hints:
        if name + _TABLE_SUFFIX in pieces:
            table = np.load(io.BytesIO(pieces[name + _TABLE_SUFFIX]), allow_pickle=False)
            values[name] = conform(table, TABLE_DTYPES[name])
    return Program(**values)


def _array_bytes(table: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, table, allow_pickle=False)
    return buffer.getvalue()
