"""The definitions file of a capture log: what the numbers in the records stand for.

One JSON object a line, written at once, so a record never refers to a line that is not there.
Kinds: "process", "stack", "source", "module", "module_call", "name", "tensor", "executable", "collective",
"clock", "warning", "end".
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuron_tools.capture.text import storable
from neuron_tools.capture.typed_sources import cells, typed_text
from neuron_tools.frozen import frozen
from neuron_tools.records.capture_log import LOG_VERSION
from neuron_tools.records.program import Frame

FILE_NAME = "definitions.jsonl"


class DefinitionsWriter:
    """Appends definitions; safe to call from several threads.

    Lines go to the file unbuffered: a forked child must not inherit half of one and write it again.

    Raises:
        OSError: The file cannot be made.
    """

    def __init__(self, directory: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file: int | None = os.open(directory / FILE_NAME, flags, 0o666)
        self._lock = threading.Lock()
        self._collectives = 0
        self._files: set[str] = set()

    def write(self, kind: str, **fields: Any) -> None:
        """Append one definition. A full disk is left to the recorder to report."""
        line = json.dumps({"kind": kind, **fields}, separators=(",", ":")) + "\n"
        with self._lock:
            if self._file is not None:
                with suppress(OSError):
                    os.write(self._file, line.encode("ascii"))

    def process(self, **facts: Any) -> None:
        """Define whose log it is, and how its records are laid out."""
        self.write("process", log_version=LOG_VERSION, **facts)

    def stack(self, number: int, frames: Sequence[tuple[str, int, str]]) -> None:
        """Define a source stack, innermost frame first."""
        for file in sorted({file for file, _, _ in frames} - self._files):
            self._source(file)
        self.write("stack", id=number, frames=[list(frame) for frame in frames])

    def cells(self) -> None:
        """Define the texts of all cells that ran: samples and graphs name some that no stack does."""
        for file in sorted(set(cells()) - self._files):
            self._source(file)

    def _source(self, file: str) -> None:
        """Define the text of code that stands in no file; of other files those who read the log find it."""
        self._files.add(file)
        text = typed_text(file)
        if text is not None:
            self.write("source", path=file, text=text)

    def name(self, number: int, text: str) -> None:
        """Define an operation's or range's name."""
        self.write("name", id=number, text=text)

    def tensor(self, address: int, name: str, category: str) -> None:
        """Define whose memory an ALLOCATE record's address is; the record may stand before or after it."""
        self.write("tensor", address=address, name=name, category=category)

    def module_call(self, path: str, text: str) -> None:
        """Define how a module was called."""
        self.write("module_call", path=path, text=text)

    def collective(self, fields: Mapping[str, Any]) -> int:
        """Define what a collective is; returns its number, counted from 1."""
        with self._lock:
            self._collectives += 1
            number = self._collectives
        self.write("collective", id=number, **fields)
        return number

    def close(self) -> None:
        """Close the file; what is written afterwards is dropped."""
        with self._lock:
            file, self._file = self._file, None
        if file is not None:
            os.close(file)


@frozen
class ModuleName:
    """An nn.Module of the user's model: attribute path from the root, and class."""

    path: str
    class_name: str


@frozen
class TensorName:
    """Whose memory an address is."""

    address: int
    name: str
    category: str


@frozen
class Collective:
    """What a COLLECTIVE record's number stands for.

    Attributes:
        operation: As the published tools spell it, "AllReduce".
        title: As the user calls it, "all_reduce".
        elements, dtype: Of the larger of a rank's input and output.
        bus_factor: Bus bandwidth by algorithm bandwidth.
        ranks: That take part; sender and receiver of a message.
        group: Name of their process group.
        is_pair: A message from one to another.
        running: Ranks of the job that run.
        replicas: How many times the job that runs is simulated; 1 without replication.
        over_replicas: Whether the group reaches over all replicas.
    """

    operation: str
    title: str
    algorithm: str
    dtype: str
    elements: int
    input_bytes: int
    output_bytes: int
    bus_factor: float
    ranks: tuple[int, ...]
    group: str
    is_pair: bool
    running: int = 0
    replicas: int = 1
    over_replicas: bool = False

    @property
    def ranks_text(self) -> str:
        """The ranks as the profile has them: "[0,1]"."""
        return self.ranks_in(0)

    def ranks_in(self, replica: int) -> str:
        """The ranks of the group that stands for this one in a replica."""
        shift = 0 if self.over_replicas else replica * self.running
        return "[" + ",".join(str(rank + shift) for rank in self.ranks) + "]"

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> Collective:
        """The facts that a line of kind "collective" tells.

        Raises:
            ValueError, KeyError, TypeError: One of them is missing or no number.
        """
        return cls(
            operation=storable(line["operation"]),
            title=storable(line["title"]),
            algorithm=storable(line["algorithm"]),
            dtype=storable(line["dtype"]),
            elements=int(line["elements"]),
            input_bytes=int(line["input_bytes"]),
            output_bytes=int(line["output_bytes"]),
            bus_factor=float(line["bus_factor"]),
            ranks=tuple(int(rank) for rank in line["ranks"]),
            group=storable(line["group"]),
            is_pair=bool(line["pair"]),
            running=int(line.get("running", 0)),
            replicas=int(line.get("replicas", 1)),
            over_replicas=bool(line.get("over_replicas", False)),
        )


@frozen
class ProcessFacts:
    """A recorded process; zeros and empty where its log does not say.

    Attributes:
        process_id: Its number in the operating system; under the fixed clock, its number in the capture.
        parent_id: The process that started it.
        command: Its command line.
        start_unix_ns: Unix time of its time 0; 0 under the fixed clock.
        first_core: NeuronCore that its device 0 is.
        rank: Its rank in a distributed job; None where it has none.
        host: The machine it ran on.
        log_version: Of its records; 1 where it is not told.
    """

    process_id: int = 0
    parent_id: int = 0
    command: tuple[str, ...] = ()
    start_unix_ns: int = 0
    first_core: int = 0
    rank: int | None = None
    host: str = ""
    log_version: int = LOG_VERSION

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> ProcessFacts:
        """The facts that a line of kind "process" tells.

        Raises:
            ValueError, TypeError: One of them is no number or text.
        """
        numbers = ("process_id", "parent_id", "start_unix_ns", "first_core")
        rank = line.get("rank")
        return cls(
            rank=None if rank is None else int(rank),
            host=storable(str(line.get("host", ""))),
            log_version=int(line.get("log_version", 1)),
            command=tuple(storable(part) for part in line.get("command", ())),
            **{name: int(line.get(name, 0)) for name in numbers},
        )


MADE_OF_GRAPH = "<eval_with_key>"
"""What torch.fx says is the file of code that it makes, before a number that counts what a process made."""


@dataclass
class Definitions:
    """All definitions read so far from one process's log.

    Attributes:
        tensors: In the order of their definition.
        module_calls: Path of each module whose call is told, and the text.
        sources: Path and text of code that stands in no file.
        warnings: (message, category) of each.
        ended: Recording came to its end.
        rest_count: Records in the log when a process that others end was last at rest; -1 where it was not.
    """

    process: ProcessFacts = field(default_factory=ProcessFacts)
    stacks: dict[int, tuple[Frame, ...]] = field(default_factory=lambda: {0: ()})
    modules: dict[int, ModuleName] = field(default_factory=lambda: {0: ModuleName("", "")})
    names: dict[int, str] = field(default_factory=lambda: {0: ""})
    executables: dict[int, str] = field(default_factory=dict)
    collectives: dict[int, Collective] = field(default_factory=dict)
    tensors: list[TensorName] = field(default_factory=list)
    module_calls: list[tuple[str, str]] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    warnings: list[tuple[str, str]] = field(default_factory=list)
    ended: bool = False
    rest_count: int = -1

    def take(self, line: dict[str, Any]) -> None:
        """Take in one line; lines of unknown kind are passed over.

        Raises:
            ValueError, KeyError, TypeError: The line is not what its kind asks for.
        """
        kind = line.get("kind")
        if kind == "stack":
            self.stacks[int(line["id"])] = _stack([_frame(*frame) for frame in line["frames"]])
        elif kind == "source":
            self.sources[storable(line["path"])] = storable(line["text"])
        elif kind == "module":
            self.modules[int(line["id"])] = ModuleName(storable(line["path"]), storable(line["class"]))
        elif kind == "name":
            self.names[int(line["id"])] = storable(line["text"])
        elif kind == "tensor":
            address, name = int(line["address"]), storable(line["name"])
            self.tensors.append(TensorName(address, name, storable(line["category"])))
        elif kind == "module_call":
            self.module_calls.append((storable(line["path"]), storable(line["text"])))
        elif kind == "collective":
            self.collectives[int(line["id"])] = Collective.from_line(line)
        elif kind == "executable":
            self.executables[int(line["id"])] = storable(line["file"])
        elif kind == "warning":
            self.warnings.append((storable(line["message"]), storable(line["category"])))
        elif kind == "process":
            self.process = ProcessFacts.from_line(line)
        elif kind == "end":
            self.ended = True
        elif kind == "rest":
            self.rest_count = int(line["record_count"])


def _stack(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """A stack without code that was made of a graph, which nobody can open, as long as other code is left."""
    written = tuple(frame for frame in frames if frame.file != MADE_OF_GRAPH)
    return written or tuple(frames)


def _frame(file: str, line: int, function: str) -> Frame:
    name = MADE_OF_GRAPH if file.startswith(MADE_OF_GRAPH) else storable(file)
    return Frame(name, int(line), storable(function))


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
                self.definitions.take(_object(line))
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
                self.definitions.warnings.append(("A damaged line of the capture log was left out.", "log"))


def _object(line: bytes) -> dict[str, Any]:
    parsed = json.loads(line)
    if not isinstance(parsed, dict):
        raise ValueError("not an object")
    return parsed
