"""Simulated time without a recording: what `python -m neuron_tools SCRIPT` runs a script with.

Operators and graphs are compiled and simulated as in a capture, so that events, torch.profiler and the
simulated driver's counters tell the device's time; nothing is kept.
"""

from __future__ import annotations

import atexit
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from neuron_tools import hardware
from neuron_tools.capture import extraction
from neuron_tools.capture.definitions import DefinitionsWriter
from neuron_tools.capture.executables import ExecutableStore
from neuron_tools.capture.options import CaptureOptions, eager_fusion_of, simulated_core
from neuron_tools.capture.runtimes import Recording
from neuron_tools.capture.runtimes.torch_runtime import TorchRuntime
from neuron_tools.capture.untraced import untraced
from neuron_tools.records.executable import Executable

VARIABLE = "NEURON_TOOLS_TIMED"
"""The target to simulate; processes that the script starts inherit it."""
DEFAULT_TARGET = "trn2"


_running: list[TorchRuntime] = []


class UnkeptExecutables(ExecutableStore):
    """Executables of this process that nobody reads later."""

    def _store(self, executable: Executable, code: Path | None) -> None:
        """Nothing is written."""


class NoDefinitions(DefinitionsWriter):
    """Definitions that nobody reads."""

    def write(self, kind: str, **fields: Any) -> None:
        """Nothing is written."""


class TimedTorch(TorchRuntime):
    """The `neuron` PyTorch device with its time, without a log."""

    def start(self, recording: Recording) -> None:
        """Configure the device as the simulated one, and keep time."""
        from neuron_tools.device import native
        from neuron_tools.frontends import executables

        self._configure_time(recording)
        self._describe_device(recording)
        self._count_for_driver(recording, profile=None)
        native.start_timing(untraced(recording.store.for_operation), untraced(recording.store.for_fusion))
        untraced(recording.store.executable_for)
        self._hooks.append(executables.install(recording.store))
        self._time_collectives(recording, None)


def start_timed_torch(target: str) -> None:
    """Keeps time until the process ends.

    Raises:
        UnknownTargetError: There is no such target.
        NeuronToolsError: The device cannot be built.
    """
    lnc = hardware.chosen_lnc(target)
    options = CaptureOptions(Path(), target, lnc, eager_fusion=eager_fusion_of(os.environ))
    core = simulated_core(options)
    with tempfile.TemporaryDirectory(prefix="neuron-tools-") as folder:
        directory = Path(folder)
        definitions = NoDefinitions(directory)
        kind = extraction.ExtractedGraphs if os.environ.get(extraction.VARIABLE) == "1" else UnkeptExecutables
        store: ExecutableStore = kind(directory, core, definitions, keep_compile_time=False)
    runtime = TimedTorch()
    runtime.prepare()
    runtime.start(Recording(options, directory, core, definitions, store, time.time_ns()))
    _running.append(runtime)
    atexit.register(stop_timed_torch)
    os.register_at_fork(after_in_child=_abandon)


def stop_timed_torch() -> None:
    """Keep no more time, as where a recording does it from now on; nothing where none is kept."""
    while _running:
        _running.pop().stop()


def _abandon() -> None:
    while _running:
        _running.pop().abandon()
