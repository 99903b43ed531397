"""Reads one process's capture log while it grows."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from neuron_tools.capture.definitions import Definitions, DefinitionsReader
from neuron_tools.capture.sound import check_executable
from neuron_tools.errors import NeuronToolsError
from neuron_tools.records.capture_log import EVENTS_FILE, RECORD_DTYPE, RecordKind
from neuron_tools.records.executable import Executable, ExecutableError, load, shares_code
from neuron_tools.simulator.errors import ProgramError

_KINDS = [int(kind) for kind in RecordKind]
MOST_PROCESSES = 10_000
FIRST_RECORDS = 64  # where a log begins is looked for in so many: some may be damaged
_LATEST_NS = 1 << 62  # a time after this, 146 years, is no time


class LogWindow(Protocol):
    """A part of a log, from one record to the last."""

    @property
    def first_record(self) -> int:
        """Its first record."""

    @property
    def held_bytes(self) -> tuple[int, ...]:
        """Device memory that tensors held before it, by device."""


class ProcessLog:
    """The records and definitions of one process, handed out once each, in order.

    Args:
        directory: The log's folder, `process-NNNN`.
        window: The part to hand out, where it is not all.

    Attributes:
        damaged: Records left out because they cannot be true.
    """

    def __init__(self, directory: Path, window: LogWindow | None = None) -> None:
        self.directory = directory
        self._window = window
        self._definitions = DefinitionsReader(directory)
        self._offset = window.first_record * RECORD_DTYPE.itemsize if window else 0
        self.damaged = 0
        self._executables: WeakValueDictionary[Path, Executable] = WeakValueDictionary()
        self._codes: dict[Path, Executable] = {}

    @property
    def is_window(self) -> bool:
        """Whether a part is handed out, not all."""
        return self._window is not None

    @property
    def held_bytes(self) -> tuple[int, ...]:
        """Device memory that tensors held before the first record handed out, by device."""
        return self._window.held_bytes if self._window is not None else ()

    @property
    def definitions(self) -> Definitions:
        """What has been defined so far."""
        return self._definitions.definitions

    @property
    def is_whole(self) -> bool:
        """Whether recording came to its end, or all was handed out and stops at the last rest."""
        count = self._offset // RECORD_DTYPE.itemsize
        return self.definitions.ended or self.definitions.rest_count == count

    def read(self, limit: int) -> npt.NDArray[np.void]:
        """The next records, at most `limit`; a half-written last record waits for its rest.

        Empty only where none is left: a block of nothing but damaged records is passed over.
        """
        while True:
            records = self._next(limit)
            sound = records[_is_sound(records)]
            self.damaged += len(records) - len(sound)
            if len(sound) or not len(records):
                self._definitions.poll()
                return sound

    def begin_unix_ns(self) -> int | None:
        """When the first record of those not yet handed out began; None where there is none so far.

        A window begins where its first record ends: that may be a range which began long before.
        """
        self._definitions.poll()
        waiting = self._waiting(FIRST_RECORDS)
        first = waiting[_is_sound(waiting)]
        start_unix_ns = self.definitions.process.start_unix_ns
        if not len(first) or not start_unix_ns:
            return None
        return start_unix_ns + int(first["host_end_ns" if self.is_window else "host_start_ns"][0])

    def _next(self, limit: int) -> npt.NDArray[np.void]:
        records = self._waiting(limit)
        self._offset += records.nbytes
        return records

    def _waiting(self, limit: int) -> npt.NDArray[np.void]:
        path = self.directory / EVENTS_FILE
        if not path.exists():
            return np.zeros(0, RECORD_DTYPE)
        with path.open("rb") as file:
            file.seek(self._offset)
            data = file.read(limit * RECORD_DTYPE.itemsize)
        return np.frombuffer(data[: len(data) // RECORD_DTYPE.itemsize * RECORD_DTYPE.itemsize], RECORD_DTYPE)

    def pending(self) -> int:
        """How many whole records wait to be read."""
        path = self.directory / EVENTS_FILE
        size = path.stat().st_size if path.exists() else 0
        return (size - self._offset) // RECORD_DTYPE.itemsize

    def executable(self, number: int) -> Executable | None:
        """An executable of this process; None where its file is missing, damaged, or another executable's.

        Those that share their code share its tables.
        """
        file = self.definitions.executables.get(number)
        if file is None:
            return None
        try:
            executable = self._of_file(self.directory / file)
        except (ExecutableError, ProgramError):
            return None
        return executable if executable.number == number else None

    def _of_file(self, path: Path) -> Executable:
        """The executable of a file, whose code is read and checked once.

        Raises:
            ExecutableError, ProgramError: The file is damaged.
        """
        known = self._executables.get(path)
        if known is None:
            known = load(path, self._code)
            if not any(shares_code(known, each) for each in self._codes.values()):
                check_executable(known)
            self._executables[path] = known
        return known

    def _code(self, path: Path) -> Executable:
        """The executable of a file whose code others share, kept for the next of them.

        Raises:
            ExecutableError, ProgramError: The file is damaged.
        """
        executable = self._codes[path] = self._of_file(path)
        return executable


def _is_sound(records: npt.NDArray[np.void]) -> npt.NDArray[np.bool_]:
    """Whether each record can be true: a known kind, and times in order."""
    sound: npt.NDArray[np.bool_] = np.isin(records["kind"], _KINDS)
    for side in ("host", "device"):
        start, end = records[f"{side}_start_ns"], records[f"{side}_end_ns"]
        sound &= (start >= 0) & (start <= end) & (end < _LATEST_NS)
    return sound & (records["bytes"] >= 0)


def make_log_directory(log_directory: Path) -> None:
    """Make the folder of a capture's logs, unless it is there.

    Raises:
        NeuronToolsError: It cannot be made.
    """
    try:
        log_directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(log_directory, error) from error


def _unwritable(log_directory: Path, error: OSError) -> NeuronToolsError:
    return NeuronToolsError(f"The capture log {log_directory} cannot be written: {error.strerror}.")


def claim_process_directory(log_directory: Path, rank: int | None = None, ranks: int = 0) -> Path:
    """Make the next free folder `process-0000`, `process-0001`, ...; safe with many processes.

    Args:
        log_directory: Where the folders stand.
        rank: Rank of this process in its job: it gets the folder after its launcher's, so that processes are
            numbered alike in every run. A process that only inherited the rank comes after all ranks.
        ranks: Of the job.

    Raises:
        NeuronToolsError: The folder cannot be made.
    """
    make_log_directory(log_directory)
    try:
        first = [] if rank is None else [rank + 1]
        for number in (*first, *range(ranks + 1 if first else 0, MOST_PROCESSES)):
            directory = log_directory / f"process-{number:04d}"
            try:
                directory.mkdir()
            except FileExistsError:
                continue
            return directory
    except OSError as error:
        raise _unwritable(log_directory, error) from error
    raise NeuronToolsError(
        f"{log_directory} holds {MOST_PROCESSES:,} processes: capture a command that starts fewer."
    )
