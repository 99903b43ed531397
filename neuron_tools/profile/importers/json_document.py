"""A JSON document read as a stream: its top-level members, and the objects of its lists in chunks.

A trace is one huge list with little around it. Memory holds a few blocks of text, whatever the length of
the list; the other members are small and are taken whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neuron_tools.arrays import Bytes
from neuron_tools.profile.importers import json_scan
from neuron_tools.profile.importers.errors import TraceError
from neuron_tools.profile.importers.json_rows import JsonRows, KeySet, plain_value
from neuron_tools.profile.importers.json_text import loads
from neuron_tools.profile.importers.trace_file import TraceFile

CHUNK_ROWS = 1 << 15
LARGEST_ELEMENT_BYTES = 32 << 20
LONGEST_UTF8_TAIL = 3
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass
class Damage:
    """What had to be left out or mended while reading, by kind."""

    elements: int = 0
    no_objects: int = 0
    invalid_text_blocks: int = 0
    is_truncated: bool = False
    notes: list[str] = field(default_factory=list)

    def sentences(self) -> list[str]:
        """One sentence for each kind of damage."""
        found = list(self.notes)
        if self.elements:
            found.append(f"{self.elements:,} elements that are not valid JSON were left out.")
        if self.no_objects:
            found.append(f"{self.no_objects:,} elements that are no objects were left out.")
        if self.invalid_text_blocks:
            found.append("Bytes that are not UTF-8 were replaced.")
        if self.is_truncated:
            found.append("The file ends in the middle; what stands before was imported.")
        return found


class JsonDocument:
    """The top-level members of a file that is one JSON value, or a list, or one object a line.

    Args:
        file: The file.
        most_bytes: The longest text of one value, or of one element of a list, that is taken.

    Example:
        >>> document = JsonDocument(TraceFile(path))
        >>> for key in document.members():
        ...     if key == "traceEvents":
        ...         for rows in document.objects(KeySet(["ph", "ts"])):
        ...             ...
        ...     else:
        ...         value = document.value()
    """

    def __init__(self, file: TraceFile, most_bytes: int = LARGEST_ELEMENT_BYTES) -> None:
        self.damage = Damage()
        self._most_bytes = most_bytes
        self._file = file
        self._blocks = file.blocks()
        self._tail = b""
        self._data: Bytes = np.zeros(0, np.uint8)
        self._position = 0
        self._at_end = False
        self._pending_value = False
        self._read_more()
        if bytes(self._data[:3]) == BYTE_ORDER_MARK:
            self._position = 3

    def members(self) -> Iterator[str]:
        """Keys of the top-level object in order; "" alone where the document is a list.

        After each key, take its value by `value` or `objects`; otherwise it is skipped.

        Raises:
            TraceError: The document is neither an object nor a list.
        """
        first = self._byte()
        if first == b"[":
            self._pending_value = True
            yield ""
            self._skip_pending()
            return
        if first != b"{":
            raise TraceError(f"{self._file.path} is no JSON document.")
        yield from self._keys()

    def descend(self) -> Iterator[str]:
        """Keys of the object that is the current member's value, or of each object of its list in turn.

        As `members`: take the values of those that are wanted; the others are skipped.
        """
        self._pending_value = False
        first = self._byte()
        if first == b"{":
            yield from self._keys()
        elif first == b"[":
            self._position += 1
            while (byte := self._byte()) not in (b"]", b""):
                if byte == b"{":
                    yield from self._keys()
                elif byte == b",":
                    self._position += 1
                else:
                    self._skip_value()
            self._position += bool(byte)
        else:
            self._skip_value()

    def _keys(self) -> Iterator[str]:
        """Keys of the object at the current position, which is passed."""
        self._position += 1
        while (byte := self._byte()) != b"}":
            if byte == b",":
                self._position += 1
                continue
            key = self._key()
            if key is None:
                return
            self._pending_value = True
            yield key
            self._skip_pending()
        self._position += 1

    def value(self) -> Any:
        """The value of the current member; None where it is damaged or longer than is taken."""
        self._pending_value = False
        text = self._value_text()
        if text is None:
            return None
        value = plain_value(text)
        if value is None and text != b"null":
            self.damage.notes.append("A part of the file's head is not valid JSON and was left out.")
        return value

    def is_list(self) -> bool:
        """Whether the value of the current member is a list."""
        return self._byte() == b"["

    def objects(self, keys: KeySet, *, lines: bool = False) -> Iterator[JsonRows]:
        """The objects of the current member's list, in chunks of at most 32 Ki, with the wanted members.

        Args:
            keys: The members that are wanted.
            lines: Whether the file is a sequence of objects without a list around them.
        """
        self._pending_value = False
        if not lines:
            if self._byte() != b"[":
                self._skip_value()
                return
            self._position += 1
        while True:
            rows, is_closed = self._scan(keys)
            if rows is not None:
                yield rows
            elif is_closed:
                return
            elif self._at_end:
                if not self._drop_unfinished():
                    return
            elif len(self._data) - self._position > self._most_bytes:
                self._drop_unfinished()
            else:
                self._read_more()
            if is_closed:
                return

    def _scan(self, keys: KeySet) -> tuple[JsonRows | None, bool]:
        most = min(CHUNK_ROWS, (len(self._data) - self._position) // len("{}") + 1)
        starts, stops = (np.full((most, len(keys) + 1), -1, np.int32) for _ in range(2))
        result = np.zeros(4, np.int64)
        count = json_scan.scan_objects(
            self._data, self._position, len(self._data), keys.text, keys.offsets, starts, stops, result
        )
        self._position = int(result[json_scan.POSITION])
        self.damage.elements += int(result[json_scan.DAMAGED])
        self.damage.no_objects += int(result[json_scan.ELSEWHERE])
        rows = JsonRows(self._data, keys, starts[:count], stops[:count]) if count else None
        return rows, bool(result[json_scan.IS_CLOSED])

    def _drop_unfinished(self) -> bool:
        """Leaves out the element that has no end, and goes on at the next that looks like an object.

        Returns:
            False where there is none any more.
        """
        rest = json_scan.skip_space(self._data, self._position, len(self._data))
        if rest >= len(self._data):
            self._position = rest
            return not self._at_end
        self.damage.elements += 1
        following = json_scan.next_object(self._data, rest + 1, len(self._data))
        if following >= 0:
            self._position = following
            return True
        self.damage.is_truncated |= self._at_end
        self._position = len(self._data)
        return not self._at_end

    def _key(self) -> str | None:
        """The key at the current position, and past its colon; None where the document goes no further."""
        while True:
            end = len(self._data)
            stop = (
                json_scan.skip_string(self._data, self._position, end)
                if self._byte() == b'"'
                else json_scan.WRONG
            )
            colon = json_scan.skip_space(self._data, stop, end) if stop >= 0 else end
            if stop >= 0 and colon < end:
                break
            if stop == json_scan.WRONG or self._at_end or end - self._position > self._most_bytes:
                self.damage.is_truncated = True
                return None
            self._read_more()
        text = self._data[self._position : stop].tobytes()
        self._position = colon + 1 if self._data[colon] == ord(":") else colon
        try:
            return str(loads(text))
        except ValueError:
            return text.decode(errors="replace")

    def _value_text(self) -> bytes | None:
        """Text of the value at the current position, which is passed."""
        self._byte()
        while True:
            stop = json_scan.skip_value(self._data, self._position, len(self._data))
            if stop >= 0:
                text = self._data[self._position : stop].tobytes()
                self._position = stop
                return text
            if stop == json_scan.WRONG or self._at_end or self._unread() > self._most_bytes:
                self._give_up()
                return None
            self._read_more()

    def _skip_pending(self) -> None:
        if self._pending_value:
            self._pending_value = False
            self._skip_value()

    def _skip_value(self) -> None:
        """Passes the current value, however long: a list element by element."""
        if self._byte() == b"[":
            for _ in self.objects(KeySet(())):
                pass
        else:
            self._value_text()

    def _give_up(self) -> None:
        """What follows cannot be told apart any more."""
        self.damage.is_truncated = True
        self._position = len(self._data)
        self._at_end = True

    def _unread(self) -> int:
        return len(self._data) - self._position

    def _byte(self) -> bytes:
        """The next byte that is no white space; empty at the end."""
        while True:
            self._position = int(json_scan.skip_space(self._data, self._position, len(self._data)))
            if self._position < len(self._data):
                return self._data[self._position : self._position + 1].tobytes()
            if self._at_end:
                return b""
            self._read_more()

    def _read_more(self) -> None:
        """Puts the next block behind what is not read yet."""
        block = next(self._blocks, None)
        if block is None:
            self._at_end = True
            self.damage.is_truncated |= self._file.is_truncated
            block, self._tail = self._tail, b""
        else:
            block, self._tail = _without_cut_character(self._tail + block)
        rest = self._data[self._position :]
        self._data = np.concatenate([rest, np.frombuffer(self._valid_text(block), np.uint8)])
        self._position = 0

    def _valid_text(self, block: bytes) -> bytes:
        if block.isascii():
            return block
        try:
            block.decode()
        except UnicodeDecodeError:
            self.damage.invalid_text_blocks += 1
            return block.decode(errors="replace").encode()
        return block


def _without_cut_character(block: bytes) -> tuple[bytes, bytes]:
    """A block up to the last whole UTF-8 character, and the rest."""
    for length in range(1, min(LONGEST_UTF8_TAIL, len(block)) + 1):
        byte = block[-length]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return (block[:-length], block[-length:]) if needed > length else (block, b"")
    return block, b""
