"""Builds the profile of a capture from the logs of its processes, while they run and after."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neuron_tools.capture.clock import CaptureClock
from neuron_tools.capture.log_lock import LogLock
from neuron_tools.capture.metadata import metadata_row, source_file_rows
from neuron_tools.capture.options import CaptureOptions, simulated_core
from neuron_tools.capture.process_assembler import ProcessAssembler
from neuron_tools.capture.process_log import LogWindow, ProcessLog, make_log_directory
from neuron_tools.capture.replicas import replication_notice
from neuron_tools.capture.stacks import StackRegistry
from neuron_tools.capture.tables.rank_collectives import Meetings
from neuron_tools.capture.text import storable
from neuron_tools.errors import NeuronToolsError
from neuron_tools.frozen import frozen
from neuron_tools.neff.kept_programs import keep_programs
from neuron_tools.profile.derive import derive_tables
from neuron_tools.profile.store.frontier import is_installed
from neuron_tools.profile.writer import ProfileWriter

POLL_BUDGET_S = 0.5
SETTLING_S = 1.0
"""After a first record: several times the interval at which processes write their logs."""


@frozen
class CaptureReport:
    """How a capture ended.

    Attributes:
        directory: The profile.
        processes: How many recorded themselves.
        executions: How many executions stand in the profile.
        complete: Every process recorded to its end, and all of it stands in the profile.
    """

    directory: Path
    processes: int
    executions: int
    complete: bool


class Assembler:
    """Makes `NAME.nprof` and fills it; call `poll` about once a second, then `finish` once.

    Args:
        options: What the capture was asked to do.
        command: The captured command.
        overwrite: Begin anew a profile that exists, from its logs.
        windows: Only this part of each process's log, by its folder's name; the logs stay.

    Raises:
        UsageError: The directory exists, or the target or a setting is unknown; nothing was written then.
        NeuronToolsError: The directory cannot be written.
    """

    def __init__(
        self,
        options: CaptureOptions,
        command: Sequence[str],
        *,
        overwrite: bool = False,
        windows: Mapping[str, LogWindow] | None = None,
    ) -> None:
        self.options = options
        self._windows = windows
        self._command = [storable(part) for part in command]
        self._core = simulated_core(options)
        self._reproducible = options.host_clock == "fixed"
        self._clock = CaptureClock(shared=not self._reproducible, from_first=windows is not None)
        self._stacks = StackRegistry()
        self._meetings = Meetings()
        self._processes: list[ProcessAssembler] = []
        self._failed = False
        self._first_seen: float | None = None
        self._writer = ProfileWriter(options.directory, self._profile_metadata(), overwrite)
        make_log_directory(options.log_directory)
        self._lock = LogLock(options.log_directory)
        self._writer.append("Metadata", metadata_row(self._core, options, self._command, end_ns=None))

    def poll(self, budget_s: float = POLL_BUDGET_S) -> None:
        """Write what the processes have logged since the last call, and make it readable.

        Args:
            budget_s: Time after which the rest is left to the next call: processes may log faster than this
                writes, and whoever polls has signals to pass on.

        Raises:
            ProfileWriteError: The disk is full or the directory cannot be written. The logs then stay
                after `finish`, so that the profile can be made from them later (`recovery`).
        """
        try:
            self._find_processes()
            if self._may_begin():
                self._advance(self._reproducible, time.monotonic() + budget_s)
            if not self._reproducible:
                self._writer.flush_if_due(0.0)
        except NeuronToolsError:
            self._failed = True
            raise

    def finish(
        self, complete: bool, exit_status: int | None, interrupted: bool = False, derived: bool = True,
        **facts: Any,
    ) -> CaptureReport:  # fmt: skip
        """Write the rest, the derived tables and the profile's closing line; then remove the logs.

        Args:
            complete: Whether the command could run to its end while it was recorded.
            exit_status: The command's exit status, kept in `profile.json`.
            interrupted: Whether the user stopped it.
            derived: Whether to write the derived tables, which only summaries and pages read.
            facts: Further entries of `profile.json`.

        Raises:
            ProfileWriteError: The disk is full or the directory cannot be written; the logs stay.
        """
        try:
            self._find_processes()
            self._begin()
            self._advance(whole_blocks_only=False, until=math.inf)
            self._write_totals(exit_status)
            if derived:
                derive_tables(self.options.directory, self._writer)
            complete = complete and self._has_all() and not self._failed
            self._writer.close(complete, exit_status=exit_status, interrupted=interrupted, **facts)
            if not self._failed and self._windows is None:
                shutil.rmtree(self.options.log_directory, ignore_errors=True)
        finally:
            self._lock.release()
        executions = sum(process.executions for process in self._processes)
        return CaptureReport(self.options.directory, len(self._processes), executions, complete)

    def _has_all(self) -> bool:
        """Whether all that was to be recorded is here: a window is whole while its program still runs."""
        return self._windows is not None or all(process.log.is_whole for process in self._processes)

    def discard(self) -> None:
        """Remove the profile that was begun: nothing could be recorded."""
        self._lock.release()
        shutil.rmtree(self.options.directory, ignore_errors=True)

    def _may_begin(self) -> bool:
        """Whether the clock has begun: when every process has had time to tell what it did first.

        Processes write their logs at intervals; one that was moved, because it told of an earlier time than
        the first one read, would no longer stand where it did beside the others.
        """
        if self._clock.has_begun:
            return True
        first_unix_ns = self._first_unix_ns()
        if first_unix_ns is None:  # nothing was told, or it is not known when
            return any(process.log.pending() for process in self._processes)
        self._first_seen = self._first_seen or time.monotonic()
        age_s = max((time.time_ns() - first_unix_ns) / 1e9, time.monotonic() - self._first_seen)
        if age_s >= SETTLING_S:
            self._clock.begin(first_unix_ns)
        return self._clock.has_begun

    def _begin(self) -> None:
        """Begin the clock with what has been told."""
        if not self._clock.has_begun and (first_unix_ns := self._first_unix_ns()) is not None:
            self._clock.begin(first_unix_ns)

    def _first_unix_ns(self) -> int | None:
        found = (process.log.begin_unix_ns() for process in self._processes)
        return min((each for each in found if each is not None), default=None)

    def _advance(self, whole_blocks_only: bool, until: float) -> None:
        """Write block by block, until a time of the monotonic clock at most."""
        for process in self._processes:
            while process.advance(whole_blocks_only=whole_blocks_only):
                if time.monotonic() > until:
                    return

    def _write_totals(self, exit_status: int | None) -> None:
        """What is known only at the end: processes, executables, source files, the length."""
        recorded = self._stacks.files
        for process in self._processes:
            is_the_command = process.log.definitions.process.parent_id == os.getpid()
            self._writer.append("ProcessInfo", process.process_row(exit_status if is_the_command else None))
            for row in process.replica_rows():
                self._writer.append("ProcessInfo", row)
            for row in process.executable_rows():
                self._writer.append("Executable", row)
            process.write_host_samples()
            keep_programs(self.options.directory, process.process_idx, process.executables)
        self._write_replication()
        self._writer.append("Flow", self._meetings.flow_rows())
        # Samples reach far into libraries, whose sources anybody has.
        typed = dict(pair for each in self._processes for pair in each.log.definitions.sources.items())
        sampled = [file for file in self._stacks.files[len(recorded) :] if not self._is_installed(file)]
        self._writer.append("SourceFile", source_file_rows([*recorded, *sampled], typed))
        end_ns = max((process.end_ns for process in self._processes), default=0)
        self._writer.replace("Metadata", metadata_row(self._core, self.options, self._command, end_ns))
        self._writer.flush()

    def _is_installed(self, file: str) -> bool:
        return is_installed(file) or self._stacks.install_folders.of(file) is not None

    def _write_replication(self) -> None:
        """Say which ranks did not run."""
        running, replicas = max((each.replication for each in self._processes), default=(0, 1))
        if replicas > 1:
            notice = {"message": [replication_notice(running, replicas)], "category": ["replication"]}
            self._writer.append("Warning", notice)

    def _find_processes(self) -> None:
        folder = self.options.log_directory
        found = sorted(folder.glob("process-*")) if folder.is_dir() else []
        if self._windows is not None:
            found = [directory for directory in found if directory.name in self._windows]
        known = {process.log.directory for process in self._processes}
        for directory in [each for each in found if each not in known]:
            number = directory.name.partition("-")[2]
            index = int(number) if self._windows is None and number.isdecimal() else len(self._processes)
            log = ProcessLog(directory, self._windows[directory.name] if self._windows else None)
            self._processes.append(
                ProcessAssembler(
                    log,
                    index,
                    self._core,
                    self._writer,
                    self._stacks,
                    self._clock,
                    self._meetings,
                    with_instructions=self.options.detail == "instructions",
                )
            )
        self._processes.sort(key=lambda process: process.process_idx)

    def _profile_metadata(self) -> dict[str, Any]:
        return {
            "command": self._command,
            "target": self.options.target,
            "lnc": self.options.lnc,
            "host_clock": self.options.host_clock,
            "settings": list(self.options.settings),
            **({"ranks": self.options.ranks} if self.options.ranks else {}),
            **({"world_size": self.options.world_size} if self.options.world_size else {}),
            **({"tokens_per_step": self.options.tokens_per_step} if self.options.tokens_per_step else {}),
            **({"detail": self.options.detail} if self.options.detail != "instructions" else {}),
            **({"values": self.options.values} if self.options.values != "computed" else {}),
        }
