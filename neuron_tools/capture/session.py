"""One process's recording: claims a log, starts a runtime, says how recording ended.

Stands between the runtimes (which know a framework) and the assembler, which reads the log, usually in
another process.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from neuron_tools.capture.definitions import DefinitionsWriter
from neuron_tools.capture.executables import ExecutableStore
from neuron_tools.capture.log_lock import LogLock
from neuron_tools.capture.options import CaptureOptions, simulated_core
from neuron_tools.capture.process_log import claim_process_directory
from neuron_tools.capture.rests import Rests, is_ended_by_others
from neuron_tools.capture.runtimes import Recording, Runtime
from neuron_tools.device.distributed.job import from_environment
from neuron_tools.errors import AlreadyRecordedError, NeuronToolsError
from neuron_tools.hardware import NeuronCore

_running: dict[type, CaptureSession] = {}


class CaptureSession:
    """Records this process until `stop`. Only one of each kind of runtime may run at a time in a process.

    Args:
        options: What the capture was asked to do.
        runtime: What is recorded, and how.
    """

    def __init__(self, options: CaptureOptions, runtime: Runtime) -> None:
        self.options = options
        self.core: NeuronCore = simulated_core(options)
        self._runtime = runtime
        self._definitions: DefinitionsWriter | None = None
        self._lock: LogLock | None = None
        self._rests: Rests | None = None

    def start(self) -> None:
        """Claim a log folder, install the hooks and start the clock.

        Raises:
            AlreadyRecordedError: Another session with this runtime is running in this process.
            NeuronToolsError: The log cannot be written or the device cannot be built.
        """
        ensure_not_recording(type(self._runtime))
        self._runtime.prepare()
        rank, ranks = _place_in_job(os.environ)
        directory = claim_process_directory(self.options.log_directory, rank, ranks)
        self._lock = LogLock(self.options.log_directory)
        _running[type(self._runtime)] = self
        try:
            self._begin(directory)
        except BaseException:
            self.abandon()
            raise

    def stop(self) -> None:
        """Take the hooks out, flush the log and say how recording ended."""
        definitions, self._definitions = self._definitions, None
        if definitions is None:
            return
        self._end_rests()
        host_end_ns = self._runtime.stop()
        error = self._runtime.error
        if error:
            definitions.write("warning", message=f"Recording stopped early: {error}", category="disk")
        definitions.cells()
        definitions.write("end", host_end_ns=host_end_ns, record_count=self._runtime.record_count)
        definitions.close()
        self._leave()

    def abandon(self) -> None:
        """Stop without writing anything more: in a forked child the log belongs to the parent."""
        self._rests = None
        self._runtime.abandon()
        definitions, self._definitions = self._definitions, None
        if definitions is not None:
            definitions.close()
        self._leave()

    def _begin(self, directory: Path) -> None:
        measured = self.options.host_clock == "measured"
        try:
            definitions = self._definitions = DefinitionsWriter(directory)
            store = ExecutableStore(directory, self.core, definitions, keep_compile_time=measured)
        except OSError as error:
            raise NeuronToolsError(
                f"The capture log {directory} cannot be written: {error.strerror}."
            ) from error
        start_unix_ns = time.time_ns() if measured else 0
        self._write_process(definitions, directory, start_unix_ns)
        self._runtime.start(Recording(self.options, directory, self.core, definitions, store, start_unix_ns))
        if is_ended_by_others(sys.orig_argv):
            self._rests = Rests(
                lambda: self._runtime.record_count,
                lambda count: definitions.write("rest", record_count=count),
            )

    def _end_rests(self) -> None:
        rests, self._rests = self._rests, None
        if rests is not None:
            rests.end()

    def _leave(self) -> None:
        """Let another session begin."""
        if self._lock is not None:
            self._lock.release()
        _running.pop(type(self._runtime), None)

    def _write_process(self, definitions: DefinitionsWriter, directory: Path, start_unix_ns: int) -> None:
        """Process facts; under the fixed clock those that reach the profile are the same in every run."""
        definitions.process(
            process_id=os.getpid() if start_unix_ns else int(directory.name.split("-")[1]),
            parent_id=os.getppid(),
            command=list(sys.orig_argv),
            start_unix_ns=start_unix_ns,
            host=socket.gethostname(),
            python=sys.version.split()[0],
            target=self.options.target,
            rank=_rank(os.environ.get("RANK", "")),
            **self._runtime.facts(),
        )


def _place_in_job(environment: Mapping[str, str]) -> tuple[int | None, int]:
    """Which of the job's processes this one is, and how many run."""
    rank, job = _rank(environment.get("RANK", "")), from_environment(environment)
    if job is None or rank is None:
        return rank, _rank(environment.get("WORLD_SIZE", "")) or 0
    return job.process_place(rank), len(job.running)


def _rank(text: str) -> int | None:
    """The rank that torchrun and its like tell a process."""
    return int(text) if text.isdecimal() else None


def ensure_not_recording(runtime: type | None = None) -> None:
    """Refuse a second recording in this process.

    Args:
        runtime: Look at recordings with this runtime only.

    Raises:
        AlreadyRecordedError: One is under way.
    """
    for kind, session in _running.items():
        if runtime in (None, kind):
            raise AlreadyRecordedError(
                f"This process is being recorded into {session.options.directory} already: "
                "profile one block at a time, or run the program without neuron-profile capture."
            )


def _abandon_in_child() -> None:
    for session in list(_running.values()):
        session.abandon()


os.register_at_fork(after_in_child=_abandon_in_child)
