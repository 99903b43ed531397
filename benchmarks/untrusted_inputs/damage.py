"""Damages an input: bytes put in, taken out, repeated, cut off or changed; values that no writer writes."""

from __future__ import annotations

import io
import json
import random
import zipfile
from copy import deepcopy
from typing import Any

import numpy as np

TOKENS = (
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\xff", b"\x00", b"-1", b"1e400", b"9" * 30, b"NaN",
    b"9223372036854775807", b"-9223372036854775808", b"Infinity", b"null", b"[" * 200, b'"ts": "x"',
    b"\\ud800", b'"ph":"E"', b"\n", b'"dur": -5', b"\x80" * 12, b'{"a":' * 200, b"\x0a\xff\xff\xff\xff\x0f",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1 << 31, 1 << 62, 1 << 63, -(1 << 63), 10**25, 1e308, -0.5, "", "x" * 2000, "\x00",
    "../../../etc/passwd", "'; DROP TABLE x; --", "<script>alert(1)</script>", "\ud800", [], {}, [[]],
    {"a": {"b": None}}, [1, "2", None],
)  # fmt: skip
NUMBERS = (0, -1, 1, 255, 1 << 15, 1 << 31, (1 << 63) - 1, -(1 << 63), 12345)
WIDTHS = (1, 2, 4, 8)
MOST_CHANGES = 6
LONGEST_PIECE = 60


def damaged(content: bytes, chance: random.Random) -> bytes:
    """The content with a few things wrong: as JSON, as an archive of tables, as numbers, or as bytes."""
    if chance.random() < 0.5:
        if content[:1] in b"{[" and content[:1]:
            return _other_value(content, chance)
        if content[:2] == b"PK":
            return _other_piece(content, chance)
        return _other_numbers(content, chance)
    return _other_bytes(content, chance)


def _other_numbers(content: bytes, chance: random.Random) -> bytes:
    """Bytes of the same length, with other numbers where numbers of some width may stand."""
    changed = bytearray(content)
    for _ in range(chance.randint(1, MOST_CHANGES)):
        width = chance.choice(WIDTHS)
        place = width * chance.randrange(max(1, len(changed) // width))
        number = chance.choice((*NUMBERS, chance.getrandbits(63)))
        changed[place : place + width] = number.to_bytes(8, "little", signed=True)[:width]
    return bytes(changed[: len(content)])


def _other_bytes(content: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randint(1, MOST_CHANGES)):
        first = chance.randint(0, len(content))
        last = min(len(content), first + chance.randint(0, LONGEST_PIECE))
        rest = {
            "insert": chance.choice(TOKENS) + content[first:],
            "remove": content[last:],
            "repeat": content[first:last] * 3 + content[last:],
            "cut": b"",
            "byte": chance.randbytes(1) + content[first + 1 :],
        }
        content = content[:first] + rest[chance.choice((*rest, "byte"))]
    return content


def _other_value(content: bytes, chance: random.Random) -> bytes:
    """JSON, or lines of it, with values of other kinds and sizes."""
    try:
        document = json.loads(content)
    except ValueError:
        lines = content.split(b"\n")
        place = chance.randrange(len(lines))
        lines[place] = _other_bytes(lines[place], chance)
        return b"\n".join(lines)
    for _ in range(chance.randint(1, MOST_CHANGES)):
        _change_somewhere(document, chance)
    return json.dumps(document).encode()


def _change_somewhere(document: Any, chance: random.Random) -> None:
    while True:
        keys = list(document) if isinstance(document, dict) else list(range(len(document)))
        if not keys:
            return
        key = chance.choice(keys)
        if not isinstance(document[key], (dict, list)) or chance.random() < 0.15:
            document[key] = deepcopy(chance.choice(VALUES))
            return
        document = document[key]


def _other_piece(content: bytes, chance: random.Random) -> bytes:
    """An archive, whole and with right sums, of which one piece is damaged."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        pieces = {name: archive.read(name) for name in archive.namelist()}
    name = chance.choice(sorted(pieces))
    is_table = name.endswith(".npy") and chance.random() < 0.7
    pieces[name] = _other_cells(pieces[name], chance) if is_table else damaged(pieces[name], chance)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, data in pieces.items():
            archive.writestr(each, data)
    return made.getvalue()


def _other_cells(data: bytes, chance: random.Random) -> bytes:
    """A table with other numbers in a few cells."""
    table = np.load(io.BytesIO(data), allow_pickle=False).copy()
    if not table.size:
        return _other_bytes(data, chance)
    for _ in range(chance.randint(1, MOST_CHANGES)):
        column = table[chance.choice(table.dtype.names)] if table.dtype.names else table
        if column.dtype.kind in "iu":
            row = chance.randrange(len(column))
            column[row] = np.array(chance.choice(NUMBERS), np.int64).astype(column.dtype)
    made = io.BytesIO()
    np.save(made, table, allow_pickle=False)
    return made.getvalue()
