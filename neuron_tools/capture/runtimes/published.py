"""Lets the simulated driver's tree show a recording of a program that does not use the PyTorch device."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from neuron_tools.capture.runtimes.runtime import Recording
from neuron_tools.device.driver.runtime import host_driver, host_source
from neuron_tools.device.host.recorder import PythonRecorder

if TYPE_CHECKING:
    from neuron_tools.device.driver.usage import ExecutableUsage
    from neuron_tools.records.executable import Executable


class PublishedRecording:
    """Publishes from the first execution on, when it is known which cores the process sees.

    Args:
        recorder: What places executions.
        recording: The log that is written.
        count_cores: How many cores the process sees.
    """

    def __init__(
        self, recorder: PythonRecorder, recording: Recording, count_cores: Callable[[], int] = lambda: 1
    ) -> None:
        self._recording = recording
        self._waiting: list[Executable] | None = []
        recording.store.on_executable.append(self._define)
        host_source().follow(recorder, count_cores, self._begin)

    def end(self) -> None:
        """The recording ends; to be called while its clock still runs."""
        if self._waiting is None:
            host_driver.end_session()
        host_source().follow(None)

    def abandon(self) -> None:
        """In a forked child: the parent publishes."""
        host_source().follow(None)

    def _begin(self) -> None:
        options = self._recording.options
        host_driver.begin_session(options.target, str(options.directory), options.lnc)
        waiting, self._waiting = self._waiting or [], None
        for executable in waiting:
            self._define(executable)
        host_driver.start()

    def _define(self, executable: Executable) -> None:
        if self._waiting is not None:
            self._waiting.append(executable)
            return
        host_driver.define(executable.number, partial(usage_of, executable))


class Usages:
    """What executions add to the driver's counters: worked out once for executables that share their code."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Executable], ExecutableUsage]] = {}

    def of(self, executable: Executable) -> ExecutableUsage:
        """The usage of one execution."""
        simulation = executable.simulation
        if id(simulation) in self._known:
            reference, usage = self._known[id(simulation)]
            first = reference()
            if first is not None and first.simulation is simulation:
                return usage
        usage = usage_of(executable)
        self._known[id(simulation)] = weakref.ref(executable), usage
        return usage


def usage_of(executable: Executable) -> ExecutableUsage:
    """What one execution adds to the driver's counters."""
    from neuron_tools.device.driver.usage import executable_usage

    return executable_usage(
        executable.name, executable.duration_ns, executable.program, executable.simulation
    )
