"""A Program as named pieces of bytes, without code in them: its tables as NumPy files, the rest as JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import fields
from tokenize import TokenError
from typing import Any

import numpy as np

from neuron_tools.records.json_values import decode, encode, field_types
from neuron_tools.records.program import TABLE_DTYPES, Program, conform
from neuron_tools.simulator.whole import check_whole

RECORD_NAME = "program.json"
_TABLE_SUFFIX = ".npy"
_SECOND = "second/"
"""Before the pieces of what the second physical core of a logical one runs."""
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def program_pieces(program: Program) -> dict[str, bytes]:
    """`program.json` and one `.npy` file per table."""
    pieces = {} if program.second is None else _named(_SECOND, program_pieces(program.second))
    values = {field.name: getattr(program, field.name) for field in fields(Program) if field.name != "second"}
    tables = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    others = {name: encode(value) for name, value in values.items() if name not in tables}
    pieces[RECORD_NAME] = json.dumps(others, separators=(",", ":")).encode()
    for name, table in tables.items():
        pieces[name + _TABLE_SUFFIX] = _array_bytes(table)
    return pieces


def program_from_pieces(pieces: Mapping[str, bytes]) -> Program:
    """The Program that `program_pieces` took apart; pieces of other names are passed over.

    Raises:
        ValueError, TypeError, KeyError, AttributeError, OSError: A piece is missing or damaged.
        ProgramError: The tables do not fit each other.
    """
    hints = field_types(Program)
    values: dict[str, Any] = {
        name: decode(hints[name], value)
        for name, value in json.loads(pieces[RECORD_NAME]).items()
        if name in hints
    }
    for name in hints:
        if name + _TABLE_SUFFIX in pieces:
            table = _array(pieces[name + _TABLE_SUFFIX])
            values[name] = conform(table, TABLE_DTYPES[name])
    if _SECOND + RECORD_NAME in pieces:
        own = {name: data for name, data in pieces.items() if name.startswith(_SECOND)}
        values["second"] = program_from_pieces(_unnamed(_SECOND, own))
    program = Program(**values)
    check_whole(program)
    return program


def _named(prefix: str, pieces: Mapping[str, bytes]) -> dict[str, bytes]:
    return {prefix + name: data for name, data in pieces.items()}


def _unnamed(prefix: str, pieces: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name.removeprefix(prefix): data for name, data in pieces.items()}


def _array(data: bytes) -> np.ndarray[Any, Any]:
    """The table in a NumPy file, which must hold as many rows as its header promises.

    Raises:
        ValueError: It is another kind of file, cut off, or no plain table.
    """
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError("The table is of a newer NumPy format.")
    try:
        shape, _, dtype = _HEADERS[version](file)
    except (SyntaxError, TokenError, RecursionError, MemoryError) as error:  # it is read as Python's own text
        raise ValueError("The table's header is no such thing.") from error
    rows = shape[0] if len(shape) == 1 else -1
    if dtype.hasobject or rows * dtype.itemsize != len(data) - file.tell():
        raise ValueError("The table is not what its header promises.")
    table: np.ndarray[Any, Any] = np.frombuffer(data, dtype, offset=file.tell()).copy()
    return table


def _array_bytes(table: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, table, allow_pickle=False)
    return buffer.getvalue()
