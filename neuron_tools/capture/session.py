"""One process's recording: installs the hooks, runs the virtual clock, writes the capture log.

Stands between the front ends and the device (below) and the assembler, which reads the log, usually in
another process.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from neuron_tools.capture.definitions import DefinitionsWriter
from neuron_tools.capture.executables import ExecutableStore
from neuron_tools.capture.log_lock import LogLock
from neuron_tools.capture.options import CaptureOptions, simulated_core
from neuron_tools.capture.process_log import claim_process_directory
from neuron_tools.capture.untraced import untraced
from neuron_tools.device.record import EVENTS_FILE
from neuron_tools.errors import NeuronToolsError, UsageError
from neuron_tools.hardware import NeuronCore

_running: CaptureSession | None = None


class CaptureSession:
    """Records this process until `stop`. Only one may run at a time in a process."""

    def __init__(self, options: CaptureOptions) -> None:
        self.options = options
        self.core: NeuronCore = simulated_core(options)
        self._hooks: list[Callable[[], None]] = []
        self._definitions: DefinitionsWriter | None = None
        self._lock: LogLock | None = None
        self._module_count = 0

    def start(self) -> None:
        """Claim a log folder, install the hooks and start the clock.

        Raises:
            UsageError: Another session is running in this process.
            NeuronToolsError: The log cannot be written or the device cannot be built.
        """
        global _running
        from neuron_tools.device import native

        ensure_not_recording()
        native.core()
        directory = claim_process_directory(self.options.log_directory)
        self._lock = LogLock(self.options.log_directory)
        _running = self
        try:
            self._begin(directory)
        except BaseException:
            self.abandon()
            raise

    def stop(self) -> None:
        """Take the hooks out, flush the log and say how recording ended."""
        definitions = self._definitions
        if definitions is None:
            return
        from neuron_tools.device import native

        self._definitions = None
        host_end_ns = native.host_now_ns()
        self._take_hooks_out()
        native.stop_recording()
        native.set_clock("measured")
        error = native.recording_error()
        if error:
            definitions.write("warning", message=f"Recording stopped early: {error}", category="disk")
        definitions.write("end", host_end_ns=host_end_ns, record_count=native.record_count())
        definitions.close()
        self._leave()

    def _begin(self, directory: Path) -> None:
        from neuron_tools.device import native

        measured = self.options.host_clock == "measured"
        try:
            definitions = self._definitions = DefinitionsWriter(directory)
            store = ExecutableStore(directory, self.core, definitions, keep_compile_time=measured)
        except OSError as error:
            raise NeuronToolsError(
                f"The capture log {directory} cannot be written: {error.strerror}."
            ) from error
        self._write_process(definitions, directory, reproducible=not measured)
        self._configure_time()
        self._describe_device()
        native.start_recording(
            str(directory / EVENTS_FILE),
            untraced(store.for_operation),
            untraced(definitions.stack),
            untraced(definitions.name),
        )
        self._install_hooks(store)

    def _leave(self) -> None:
        """Let another session begin."""
        global _running
        self._take_hooks_out()
        if self._lock is not None:
            self._lock.release()
        _running = None

    def _take_hooks_out(self) -> None:
        while self._hooks:
            self._hooks.pop()()

    def abandon(self) -> None:
        """Stop without writing anything more: in a forked child the log belongs to the parent."""
        from neuron_tools.device import native

        native.abandon_recording()
        definitions, self._definitions = self._definitions, None
        if definitions is not None:
            definitions.close()
        self._leave()

    def define_module(self, path: str, class_name: str) -> int:
        """Number of a module of the user's model; called once per module by the hooks."""
        from neuron_tools.device import native

        self._module_count += 1
        if self._definitions is not None:
            self._definitions.write("module", id=self._module_count, path=path, **{"class": class_name})
            native.name_module(self._module_count, path)
        return self._module_count

    def _configure_time(self) -> None:
        from neuron_tools.device import native

        clock: Literal["measured", "fixed"] = "fixed" if self.options.host_clock == "fixed" else "measured"
        native.set_clock(clock, self.options.fixed_ns_per_dispatch)
        native.set_launch_overhead_ns(round(self.core.launch_overhead_ns))
        native.set_copy_model(self.core.host_link_bandwidth, round(self.core.host_transfer_latency_ns))
        limit = native.memory_limit()
        limit_bytes = native.memory_limit()
        self._hooks.append(lambda: native.set_memory_limit(limit_bytes))
        native.set_memory_limit(self.core.hbm_bytes)
        self._hooks.append(lambda: native.set_memory_limit(limit))

    def _describe_device(self) -> None:
        """Let `torch.neuron.get_device_properties` tell what is simulated."""
        from neuron_tools.device.api import DeviceProperties, configure_properties, get_device_properties

        before, core = get_device_properties(), self.core
        name = f"{core.chip} {core.name} (simulated)"
        configure_properties(DeviceProperties(name, core.hbm_bytes, 1, core.generation, 0))
        self._hooks.append(lambda: configure_properties(before))

    def _install_hooks(self, store: ExecutableStore) -> None:
        from neuron_tools.device import native
        from neuron_tools.frontends import executables, torch_hooks

        self._hooks.append(torch_hooks.install(native, untraced(self.define_module)))
        untraced(store.executable_for)
        self._hooks.append(executables.install(store))

    def _write_process(self, definitions: DefinitionsWriter, directory: Path, *, reproducible: bool) -> None:
        """Process facts; under the fixed clock those that reach the profile are the same in every run."""
        import torch

        from neuron_tools.device import native

        definitions.write(
            "process",
            process_id=int(directory.name.split("-")[1]) if reproducible else os.getpid(),
            parent_id=os.getppid(),
            command=list(sys.orig_argv),
            start_unix_ns=0 if reproducible else time.time_ns(),
            torch=torch.__version__,
            python=sys.version.split()[0],
            target=self.options.target,
            held_bytes=native.held_bytes(),
            rank=_rank(os.environ.get("RANK", "")),
        )


def _rank(text: str) -> int | None:
    """The rank that torchrun and its like tell a process."""
    return int(text) if text.isdecimal() else None


def ensure_not_recording() -> None:
    """Refuse a second recording in this process.

    Raises:
        UsageError: One is under way.
    """
    if _running is not None:
        raise UsageError(
            f"This process is being recorded into {_running.options.directory} already: "
            "profile one block at a time, or run the program without neuron-profile capture."
        )


def _abandon_in_child() -> None:
    if _running is not None:
        _running.abandon()


os.register_at_fork(after_in_child=_abandon_in_child)
