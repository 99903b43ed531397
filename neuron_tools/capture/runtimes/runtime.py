"""The part of a capture session that differs from one framework to the next."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from neuron_tools.capture.definitions import DefinitionsWriter
from neuron_tools.capture.executables import ExecutableStore
from neuron_tools.capture.options import CaptureOptions
from neuron_tools.frozen import frozen
from neuron_tools.hardware import NeuronCore


@frozen
class Recording:
    """One process's log while it is written.

    Attributes:
        directory: The log's folder.
        core: The NeuronCore that is simulated.
        start_unix_ns: Unix time of the log's time 0; 0 under the fixed clock.
    """

    options: CaptureOptions
    directory: Path
    core: NeuronCore
    definitions: DefinitionsWriter
    store: ExecutableStore
    start_unix_ns: int = 0


class Runtime(Protocol):
    """Runs the virtual clock, writes the records and installs the hooks of one framework."""

    def prepare(self) -> None:
        """Make ready what recording needs, before anything is written.

        Raises:
            NeuronToolsError: It cannot be had here.
        """

    def facts(self) -> Mapping[str, Any]:
        """What the log's "process" line tells about the framework."""

    def start(self, recording: Recording) -> None:
        """Start the clock at 0 and record from now on."""

    def stop(self) -> int:
        """Take the hooks out and write what was recorded; returns the host's virtual time at the end."""

    def abandon(self) -> None:
        """Stop without writing anything more: in a forked child the log belongs to the parent."""

    @property
    def error(self) -> str | None:
        """Why writing the log stopped, or None."""

    @property
    def record_count(self) -> int:
        """Records made."""
