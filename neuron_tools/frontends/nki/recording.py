"""Records kernels that a program calls with NumPy arrays: each call is an execution, and the host waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from neuron_tools.device.host.recorder import PythonRecorder
from neuron_tools.frontends.executables import ExecutableProvider
from neuron_tools.frontends.nki.programs import KernelPrograms
from neuron_tools.nki import execution
from neuron_tools.nki.kernel import Kernel


class KernelRecording:
    """Executes kernel calls while it is installed.

    Args:
        recorder: Gets the executions.
        provider: Times the Programs.
    """

    def __init__(self, recorder: PythonRecorder, provider: ExecutableProvider) -> None:
        self._recorder = recorder
        self._programs = KernelPrograms(provider)
        self._stop: Callable[[], None] | None = None

    def install(self) -> None:
        """Listen to kernel calls."""
        self._stop = execution.listen(self._execute)

    def uninstall(self) -> None:
        """Listen no longer."""
        if self._stop is not None:
            self._stop()
            self._stop = None

    def _execute(self, kernel: Kernel, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
        with self._recorder.clock.paused():
            outputs, executables = self._programs.run(kernel, arguments, keywords)
        finish_ns = 0
        for core, (number, duration_ns) in enumerate(executables):
            finish_ns = max(finish_ns, self._recorder.execute(number, duration_ns, kernel.name, (core,)))
        self._recorder.wait(finish_ns, range(len(executables)))
        return outputs
