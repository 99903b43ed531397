"""JSON text that is always the same but for its values: cut once, filled again and again.

Making hundreds of small dictionaries for each report costs more than all that is read and counted; so the
text between the values is kept, and only the values are made anew.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from neuron_monitor.api import kernels

# Stands for a value in a structure: a character that JSON text never holds.
SLOT = orjson.Fragment(b"\0")
Number = float | int | None


def cut(structure: Any) -> list[bytes]:
    """The JSON text of a structure, cut at its `SLOT`s."""
    return orjson.dumps(structure).split(b"\0")


@dataclass(slots=True)
class Sheet:
    """A JSON list of forms with their values.

    Attributes:
        pieces: Text around the values, one more than there are values.
        numbers: The values, in order; 0 where a text stands.
        texts: JSON text to stand for a value, by its position.
    """

    pieces: list[bytes] = field(default_factory=lambda: [b"["])
    numbers: list[Number] = field(default_factory=list)
    texts: dict[int, bytes] = field(default_factory=dict)
    _form: Any = None

    def add(self, form: Sequence[bytes]) -> None:
        """Append a form; its values must have been, or must be, appended in the same order."""
        self._form = None
        if len(self.pieces) > 1 or self.pieces[0] != b"[":
            self.pieces[-1] += b","
        self.pieces[-1] += form[0]
        self.pieces += form[1:]

    def add_text(self, text: bytes) -> None:
        """Append JSON text as a value."""
        self.texts[len(self.numbers)] = text
        self.numbers.append(0)

    def text(self) -> orjson.Fragment:
        """The whole text."""
        if self._form is None:
            self._form = kernels.form(*_joined([*self.pieces[:-1], self.pieces[-1] + b"]"]))
        return orjson.Fragment(kernels.filled(self._form, self.numbers, self.texts))


def _joined(pieces: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Pieces one behind the other, and their lengths: thousands of objects would be read from memory else."""
    return b"".join(pieces), struct.pack(f"<{len(pieces)}i", *map(len, pieces))
