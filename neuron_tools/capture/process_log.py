"""Reads one process's capture log while it grows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuron_tools.capture.definitions import Definitions, DefinitionsReader
from neuron_tools.capture.executable import Executable, ExecutableError, load
from neuron_tools.capture.record import EVENTS_FILE, RECORD_DTYPE
from neuron_tools.errors import NeuronToolsError


class ProcessLog:
    """The records and definitions of one process, handed out once each, in order."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._definitions = DefinitionsReader(directory)
        self._offset = 0

    @property
    def definitions(self) -> Definitions:
        """What has been defined so far."""
        return self._definitions.definitions

    def read(self, limit: int) -> npt.NDArray[np.void]:
        """The next records, at most `limit`; a half-written last record waits for its rest."""
        path = self.directory / EVENTS_FILE
        records = np.zeros(0, RECORD_DTYPE)
        if path.exists():
            with path.open("rb") as file:
                file.seek(self._offset)
                data = file.read(limit * RECORD_DTYPE.itemsize)
            whole = len(data) // RECORD_DTYPE.itemsize * RECORD_DTYPE.itemsize
            self._offset += whole
            records = np.frombuffer(data[:whole], RECORD_DTYPE)
        self._definitions.poll()
        return records

    def pending(self) -> int:
        """How many whole records wait to be read."""
        path = self.directory / EVENTS_FILE
        size = path.stat().st_size if path.exists() else 0
        return (size - self._offset) // RECORD_DTYPE.itemsize

    def executable(self, number: int) -> Executable | None:
        """An executable of this process; None where its file is missing or damaged."""
        file = self.definitions.executables.get(number)
        if file is None:
            return None
        try:
            return load(self.directory / file)
        except ExecutableError:
            return None


def claim_process_directory(log_directory: Path) -> Path:
    """Make the next free folder `process-0000`, `process-0001`, ...; safe with many processes.

    Raises:
        NeuronToolsError: The folder cannot be made.
    """
    try:
        log_directory.mkdir(parents=True, exist_ok=True)
        for number in range(10_000):
            directory = log_directory / f"process-{number:04d}"
            try:
                directory.mkdir()
            except FileExistsError:
                continue
            return directory
    except OSError as error:
        raise NeuronToolsError(
            f"The capture log {log_directory} cannot be written: {error.strerror}."
        ) from error
    raise NeuronToolsError(f"{log_directory} holds 10,000 processes: capture a command that starts fewer.")
