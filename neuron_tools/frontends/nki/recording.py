"""Records kernels that a program calls with NumPy arrays: each call is an execution, and the host waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from neuron_tools.device.host.recorder import PythonRecorder
from neuron_tools.frontends.executables import ExecutableProvider
from neuron_tools.frontends.nki.programs import KernelPrograms
from neuron_tools.nki import execution
from neuron_tools.nki.kernel import Kernel
from neuron_tools.nki.run import Run
from neuron_tools.nki.tracer import Recording


class KernelRecording:
    """Executes kernel calls while it is installed.

    Args:
        recorder: Gets the executions.
        provider: Times the Programs.
    """

    def __init__(self, recorder: PythonRecorder, provider: ExecutableProvider) -> None:
        self._recorder = recorder
        self._programs = KernelPrograms(provider)
        self._stop: list[Callable[[], None]] = []

    def install(self) -> None:
        """Listen to kernel calls."""
        self._stop = [execution.listen(self._execute), execution.listen_to_ranks(self._execute_ranks)]

    def uninstall(self) -> None:
        """Listen no longer."""
        while self._stop:
            self._stop.pop()()

    def _execute(self, kernel: Kernel, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
        with self._recorder.clock.paused():
            outputs, executables = self._programs.run(kernel, arguments, keywords)
        self._launch(kernel, executables)
        return outputs

    def _execute_ranks(self, kernel: Kernel, run: Callable[[Recording], list[Run]]) -> list[Run]:
        with self._recorder.clock.paused():
            runs = run(Recording.ALL)
            executables = self._programs.of_ranks(kernel, runs)
        self._launch(kernel, executables)
        return runs

    def _launch(self, kernel: Kernel, executables: Sequence[tuple[int, int]]) -> None:
        """Execute (executable number, duration in ns) of each logical core at once, and wait for all."""
        finish_ns = self._recorder.execute_side_by_side(executables, kernel.name)
        self._recorder.wait(finish_ns, range(len(executables)))
