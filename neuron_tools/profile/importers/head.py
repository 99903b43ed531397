"""The beginning of a file, looked at in the ways by which formats are recognised."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from neuron_tools.profile.importers import json_scan
from neuron_tools.profile.importers.trace_file import TraceFile


@dataclass(frozen=True)
class Head:
    """The first 64 KiB of a file, unpacked.

    Attributes:
        content: The bytes.
    """

    content: bytes
    FOREIGN_KEYS: ClassVar[frozenset[str]] = frozenset(
        {"instruction", "semaphore_update", "trace_events", "neuron_runtime_data"}
    )

    @classmethod
    def of(cls, file: TraceFile) -> Head:
        """The beginning of a file."""
        return cls(file.head)

    @cached_property
    def text(self) -> bytes:
        """The content without byte order mark and leading white space."""
        return self.content.removeprefix(b"\xef\xbb\xbf").lstrip()

    @cached_property
    def is_json(self) -> bool:
        """Whether it may be JSON."""
        return self.text[:1] in (b"{", b"[")

    @cached_property
    def json_keys(self) -> frozenset[str]:
        """Keys of the first object: of the document, or of the first element where that is a list."""
        data = np.frombuffer(self.text, np.uint8)
        is_list = self.text[:1] == b"["
        position = json_scan.skip_space(data, 1, len(data)) if is_list else 0
        keys: list[str] = []
        if position >= len(data) or data[position] != ord("{"):
            return frozenset()
        position += 1
        while True:
            position = json_scan.skip_space(data, position, len(data))
            stop = (
                json_scan.skip_string(data, position, len(data))
                if self.text[position : position + 1] == b'"'
                else -1
            )
            if stop < 0:
                return frozenset(keys)
            keys.append(self.text[position + 1 : stop - 1].decode(errors="replace"))
            colon = json_scan.skip_space(data, stop, len(data))
            value = json_scan.skip_space(data, colon + 1, len(data))
            position = json_scan.skip_value(data, value, len(data))
            if position < 0:
                return frozenset(keys)
            position = json_scan.skip_space(data, position, len(data))
            if self.text[position : position + 1] != b",":
                return frozenset(keys)
            position += 1

    @property
    def is_list(self) -> bool:
        """Whether the JSON document is a list."""
        return self.text[:1] == b"["
