"""The definitions file of a capture log: what the numbers in the records stand for.

One JSON object a line, flushed as it is written, so a record never refers to a line that is not there.
Kinds: "process", "stack", "module", "name", "executable", "warning", "end".
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from neuron_tools.simulator.program import Frame

FILE_NAME = "definitions.jsonl"


class DefinitionsWriter:
    """Appends definitions; safe to call from several threads."""

    def __init__(self, directory: Path) -> None:
        self._file: TextIO = (directory / FILE_NAME).open("a", encoding="utf-8", errors="backslashreplace")
        self._lock = threading.Lock()

    def write(self, kind: str, **fields: Any) -> None:
        """Append one definition. A full disk is left to the recorder to report."""
        line = json.dumps({"kind": kind, **fields}, separators=(",", ":")) + "\n"
        with self._lock:
            try:
                self._file.write(line)
                self._file.flush()
            except (OSError, ValueError):
                return

    def stack(self, number: int, frames: Sequence[tuple[str, int, str]]) -> None:
        """Define a source stack, innermost frame first."""
        self.write("stack", id=number, frames=[list(frame) for frame in frames])

    def name(self, number: int, text: str) -> None:
        """Define an operation's or range's name."""
        self.write("name", id=number, text=text)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()


@dataclass(frozen=True, slots=True)
class ModuleName:
    """An nn.Module of the user's model: attribute path from the root, and class."""

    path: str
    class_name: str


@dataclass
class Definitions:
    """All definitions read so far from one process's log."""

    process: dict[str, Any] = field(default_factory=dict)
    stacks: dict[int, tuple[Frame, ...]] = field(default_factory=lambda: {0: ()})
    modules: dict[int, ModuleName] = field(default_factory=lambda: {0: ModuleName("", "")})
    names: dict[int, str] = field(default_factory=lambda: {0: ""})
    executables: dict[int, str] = field(default_factory=dict)
    warnings: list[tuple[str, str]] = field(default_factory=list)
    end: dict[str, Any] | None = None

    def take(self, line: dict[str, Any]) -> None:
        """Take in one line; lines of unknown kind are passed over."""
        kind = line.get("kind")
        if kind == "stack":
            self.stacks[line["id"]] = tuple(Frame(f, n, q) for f, n, q in line["frames"])
        elif kind == "module":
            self.modules[line["id"]] = ModuleName(line["path"], line["class"])
        elif kind == "name":
            self.names[line["id"]] = line["text"]
        elif kind == "executable":
            self.executables[line["id"]] = line["file"]
        elif kind == "warning":
            self.warnings.append((line["message"], line["category"]))
        elif kind == "process":
            self.process = line
        elif kind == "end":
            self.end = line


class DefinitionsReader:
    """Follows a growing definitions file; a half-written last line waits for its rest."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME
        self._offset = 0
        self.definitions = Definitions()

    def poll(self) -> None:
        """Take in what has been written since the last call."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        whole = data.rfind(b"\n") + 1
        self._offset += whole
        for line in data[:whole].splitlines():
            try:
                self.definitions.take(json.loads(line))
            except (ValueError, KeyError, TypeError):
                self.definitions.warnings.append(("A damaged line of the capture log was left out.", "log"))
