"""Builds the profile of a capture from the logs of its processes, while they run and after."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuron_tools.capture.clock import CaptureClock
from neuron_tools.capture.metadata import metadata_row, source_file_rows
from neuron_tools.capture.options import CaptureOptions, simulated_core
from neuron_tools.capture.process_assembler import ProcessAssembler
from neuron_tools.capture.process_log import ProcessLog
from neuron_tools.capture.stacks import StackRegistry
from neuron_tools.profile.derive import derive_tables
from neuron_tools.profile.writer import ProfileWriter


@dataclass(frozen=True, slots=True)
class CaptureReport:
    """How a capture ended."""

    directory: Path
    processes: int
    executions: int
    complete: bool


class Assembler:
    """Makes `NAME.nprof` and fills it; call `poll` about once a second, then `finish` once.

    Raises:
        NeuronToolsError: The directory exists or cannot be written, or the target is unknown.
    """

    def __init__(self, options: CaptureOptions, command: Sequence[str]) -> None:
        self.options = options
        self._command = command
        self._core = simulated_core(options)
        self._reproducible = options.host_clock == "fixed"
        self._clock = CaptureClock(shared=not self._reproducible)
        self._stacks = StackRegistry()
        self._processes: list[ProcessAssembler] = []
        self._writer = ProfileWriter(options.directory, self._profile_metadata(command))
        self._append("Metadata", metadata_row(self._core, options, command, end_ns=None))

    def poll(self) -> None:
        """Write what the processes have logged since the last call, and make it readable."""
        self._find_processes()
        for process in self._processes:
            while process.advance(whole_blocks_only=self._reproducible):
                pass
        if not self._reproducible:
            self._writer.flush()

    def finish(self, complete: bool, exit_status: int | None, interrupted: bool = False) -> CaptureReport:
        """Write the rest, the derived tables and the profile's closing line; then remove the logs.

        Args:
            complete: Whether every process could record to its end.
            exit_status: The command's exit status, kept in `profile.json`.
            interrupted: Whether the user stopped it.
        """
        self._find_processes()
        for process in self._processes:
            while process.advance(whole_blocks_only=False):
                pass
            self._append("ProcessInfo", process.process_row(exit_status))
            for row in process.executable_rows():
                self._append("Executable", row)
        ended = all(process.log.definitions.end is not None for process in self._processes)
        self._append("SourceFile", source_file_rows(self._stacks.files))
        end_ns = max((process.end_ns for process in self._processes), default=0)
        self._writer.replace("Metadata", metadata_row(self._core, self.options, self._command, end_ns))
        self._writer.flush()
        derive_tables(self.options.directory, self._writer)
        complete = complete and ended
        self._writer.close(complete=complete, exit_status=exit_status, interrupted=interrupted)
        shutil.rmtree(self.options.log_directory, ignore_errors=True)
        executions = sum(process.executions for process in self._processes)
        return CaptureReport(self.options.directory, len(self._processes), executions, complete)

    def _find_processes(self) -> None:
        folder = self.options.log_directory
        found = sorted(folder.glob("process-*")) if folder.is_dir() else []
        for directory in found[len(self._processes) :]:
            index = len(self._processes)
            log = ProcessLog(directory)
            self._processes.append(
                ProcessAssembler(log, index, self._core, self._writer, self._stacks, self._clock)
            )

    def _profile_metadata(self, command: Sequence[str]) -> dict[str, Any]:
        return {
            "command": list(command),
            "target": self.options.target,
            "lnc": self.options.lnc,
            "host_clock": self.options.host_clock,
            "settings": list(self.options.settings),
        }

    def _append(self, table: str, columns: dict[str, Any]) -> None:
        if len(next(iter(columns.values()))):
            self._writer.append(table, columns)
